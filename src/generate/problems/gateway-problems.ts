import { labelPairs, matchesLabels } from "../../base/labels.ts";
import type { ConfigObject } from "../../config/object.ts";
import type { CredentialSource } from "../../credentials/credential-source.ts";
import type { Gateway, Server } from "../../gen/istio/networking/v1alpha3/gateway_pb.js";
import type { GatewayServer, GenerateContext } from "../context.ts";
import { serverKind } from "../lookups/merged-gateway.ts";
import { type Finding, finding } from "./finding.ts";

type Context = Pick<GenerateContext, "inputs" | "lookups">;

/**
 * Servers of a Gateway that workloads with exactly the labels it selects do not run, because a server before them has a name on the port, or
 * the port for traffic that says no name. How servers are merged decides (`mergedGateway`); here is only found out why.
 */
export function serverConflicts(ctx: Context, object: ConfigObject<Gateway>): readonly Finding[] {
  const query = { namespace: object.namespace, labels: object.spec.selector, targetPorts: [] };
  const running = ctx.lookups.mergedGateway(query).ports.flatMap(({ servers }) => servers);
  return object.spec.servers.flatMap((server, index): readonly Finding[] => {
    if (running.some((one) => one.server === server)) return [];
    const beside = running.filter(({ server: one }) => one.port?.number === server.port?.number && one.bind === server.bind);
    return [nameConflict(ctx, { server, index, beside }) ?? portConflict(ctx, { server, index, beside })];
  });
}

interface LeftOut {
  readonly server: Server;
  readonly index: number;
  /** What runs on its port. */
  readonly beside: readonly GatewayServer[];
}

function nameConflict(ctx: Context, { server, index, beside }: LeftOut): Finding | undefined {
  if (server.tls === undefined) return undefined;
  const at = server.hosts.findIndex((host) => beside.some(({ server: one }) => one.tls !== undefined && one.hosts.includes(host)));
  const holder = beside.find(({ server: one }) => one.tls !== undefined && one.hosts.includes(server.hosts[at] ?? ""));
  if (holder === undefined) return undefined;
  const message = `${titleOf(ctx, holder)} has the name ${server.hosts[at]} on port ${server.port?.number ?? 0} already; this server is left out`;
  return finding("conflict.sni", ["servers", index, "hosts", at], message);
}

function portConflict(ctx: Context, { server, index, beside }: LeftOut): Finding {
  const holder = beside.find(({ server: one }) => serverKind(one) !== "tls") ?? beside[0];
  const by = holder === undefined ? "another server" : `${titleOf(ctx, holder)}, which carries ${KIND_NAMES[serverKind(holder.server)]}`;
  return finding(
    "conflict.port",
    ["servers", index, "port"],
    `port ${server.port?.number ?? 0} is taken by ${by}; this server is left out`,
  );
}

const KIND_NAMES = { http: "plain HTTP", tls: "TLS", tcp: "raw TCP" } as const;

function titleOf({ inputs }: Context, { gateway, server }: GatewayServer): string {
  const object = inputs.objects.get(`Gateway/${gateway}`) as ConfigObject<Gateway> | undefined;
  return `servers[${object?.spec.servers.indexOf(server) ?? 0}] of Gateway ${gateway}`;
}

/**
 * Credentials that a Gateway names and that no workload it is for would find. Call outside of queries: secrets are no part of the engine.
 */
export function missingCredentials(ctx: Context, object: ConfigObject<Gateway>, credentials: CredentialSource): readonly Finding[] {
  return object.spec.servers.flatMap((server, index): readonly Finding[] => {
    const name = server.tls?.credentialName ?? "";
    if (name === "" || name.includes("://")) return [];
    const looked = workloadNamespaces(ctx, object).map((namespace) => credentials.keyPair({ namespace, name }));
    const [first] = looked;
    if (first === undefined || first.is === "found" || looked.some(({ is }) => is === "found")) return [];
    return [finding("reference.secret", ["servers", index, "tls", "credentialName"], first.reason)];
  });
}

/** Namespaces of the workloads that a Gateway selects; its own where none is known. */
function workloadNamespaces({ inputs }: Context, { spec, namespace }: ConfigObject<Gateway>): readonly string[] {
  const [pair] = labelPairs(spec.selector);
  if (pair === undefined) return [namespace];
  const found = inputs.objects
    .indexKeys("label")
    .filter((entry) => entry.endsWith(`/${pair}`))
    .flatMap((entry) => inputs.objects.keys("label", entry))
    .map((key) => inputs.objects.get(key))
    .filter((workload) => workload !== undefined && matchesLabels(spec.selector, workload.labels))
    .map((workload) => workload?.namespace ?? "");
  return found.length === 0 ? [namespace] : [...new Set(found)].sort();
}
