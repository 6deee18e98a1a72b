import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { create, fromJson, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { EdgeError, messageOf } from "../../base/errors.ts";
import type { Connections } from "../../debug/api-types.ts";
import { type Node, NodeSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
import { readNode } from "../../generate/proxy-view.ts";
import { type Arguments, usageError } from "../arguments.ts";
import type { Host } from "../command.ts";
import { istiodClient } from "../istiod-client.ts";
import { type MeshProxy, namedProxy } from "./mesh-proxies.ts";

/** The proxies a user names, or those connected to istiod; undefined where the configuration is to tell. */
export async function chosenProxies(args: Arguments, host: Host): Promise<readonly MeshProxy[] | undefined> {
  const named = args.list("proxy");
  if (args.has("connected")) {
    if (named.length > 0) throw usageError("give either --proxy or --connected");
    return connectedProxies(await istiodClient(args, host));
  }
  if (named.length === 0) return undefined;
  return Promise.all(
    named.map(async (word) => proxyOf(word.includes("~") ? create(NodeSchema, { id: word }) : await nodeIn(word, host.cwd))),
  );
}

function proxyOf(node: Node): MeshProxy {
  const facts = readNode(node);
  if ("refused" in facts) throw usageError(facts.refused);
  return namedProxy(facts);
}

/** A node, or a bootstrap with one in it. */
async function nodeIn(file: string, cwd: string): Promise<Node> {
  try {
    const json = JSON.parse(await readFile(resolve(cwd, file), "utf8")) as JsonValue;
    const isObject = typeof json === "object" && json !== null && !Array.isArray(json);
    return fromJson(NodeSchema, (isObject ? json.node : undefined) ?? json, { ignoreUnknownFields: true });
  } catch (error) {
    throw new EdgeError("file_unreadable", `${file} does not hold a node of Envoy as JSON: ${messageOf(error)}`);
  }
}

/** Who is connected, as they said it themselves. A proxy with several connections counts once. */
async function connectedProxies(istiod: { get<T>(path: string): Promise<T> }): Promise<readonly MeshProxy[]> {
  const { clients } = await istiod.get<Connections>("/debug/adsz");
  const proxies = new Map<string, MeshProxy>();
  for (const { connectionId, metadata, locality, watches = {} } of clients) {
    if (metadata === undefined) continue;
    const id = connectionId.slice(0, connectionId.lastIndexOf("-"));
    const { region = "", zone = "", sub_zone: subZone = "" } = locality ?? {};
    const node = create(NodeSchema, { id, metadata: metadata as JsonObject, locality: { region, zone, subZone } });
    proxies.set(id, { ...proxyOf(node), watches });
  }
  return [...proxies.values()];
}
