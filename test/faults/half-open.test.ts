import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { create, toBinary } from "@bufbuild/protobuf";
import { credentials } from "@grpc/grpc-js";
import { describe, it, onTestFinished } from "vitest";
import { DeltaDiscoveryRequestSchema } from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { DELTA_METHOD } from "../../src/wire/grpc-server.ts";
import { CLUSTER_TYPE } from "../../src/wire/type-urls.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { createIssuer } from "../support/tokens.ts";
import { eventually } from "../support/wait.ts";
import { subscribe } from "../support/xds-subscriber.ts";

/*
 * A machine is gone without a word: its cable was pulled, and nobody tells the other side.
 */

const canPlug = process.platform === "linux" && process.getuid?.() === 0;
if (!canPlug) process.stdout.write("half-open connections are not tried: network namespaces need root on Linux\n");

const issuer = createIssuer("https://id.example.com");
const MESH = `tokenIssuers: [{issuer: "${issuer.name}", jwks: '${issuer.jwks}', audiences: [istio-ca], identity: {namespace: ns, serviceAccount: sa}}]\n`;
const token = (): string => issuer.token({ aud: "istio-ca", ns: "shop", sa: "cart" });
const LOST = 5;

const entry = (address: string): string => `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: one, namespace: shop}
spec: {hosts: [one.test], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS, endpoints: [{address: ${address}}]}
`;

const ip = (...words: readonly string[]): string => execFileSync("ip", words, { encoding: "utf8" });

/** A machine on a cable of its own. */
interface Machine {
  readonly namespace: string;
  /** Our end of the cable. */
  readonly ours: string;
}

function plugIn(): Machine {
  const namespace = `half-open-${process.pid}`;
  const net = `10.78.${process.pid % 250}`;
  const cable = `ho${process.pid}`;
  ip("netns", "add", namespace);
  onTestFinished(() => void ip("netns", "del", namespace));
  ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", namespace);
  ip("address", "add", `${net}.1/30`, "dev", cable);
  ip("link", "set", cable, "up");
  ip("-n", namespace, "address", "add", `${net}.2/30`, "dev", "eth0");
  ip("-n", namespace, "link", "set", "eth0", "up");
  return { namespace, ours: `${net}.1` };
}

/** From now on nothing that the machine sends arrives, not even a word that the connection is over. */
const pullCable = ({ namespace, ours }: Machine): string => ip("-n", namespace, "route", "add", "blackhole", `${ours}/32`);

/** Streams that are opened on the machine and stay open. */
function openStreams({ namespace, ours }: Machine, port: number): void {
  const requests = Array.from({ length: LOST }, (_, index) => {
    const node = {
      id: `sidecar~10.0.0.${index}~lost-${index}.shop~shop.svc.cluster.local`,
      metadata: { NAMESPACE: "shop", SERVICE_ACCOUNT: "cart" },
    };
    return Buffer.from(
      toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, { node, typeUrl: CLUSTER_TYPE })),
    ).toString("base64");
  });
  const script = `
    const { connect } = require("node:http2");
    for (const request of ${JSON.stringify(requests)}) {
      const stream = connect("http://${ours}:${port}").on("error", () => {}).request({ ":method": "POST", ":path": "${DELTA_METHOD}", "content-type": "application/grpc", te: "trailers", authorization: "Bearer ${token()}" });
      const body = Buffer.from(request, "base64");
      const head = Buffer.alloc(5);
      head.writeUInt32BE(body.length, 1);
      stream.on("error", () => {}).resume().write(Buffer.concat([head, body]));
    }`;
  const child = spawn("ip", ["netns", "exec", namespace, process.execPath, "-e", script], { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
}

const handlesOf = (istiod: Istiod): number => readdirSync(`/proc/${istiod.pid()}/fd`).length;

describe.skipIf(!canPlug)("connections whose other end is gone without a word", () => {
  it("are noticed and let go of, and others are served meanwhile", async () => {
    const machine = plugIn();
    const port = await freePort("0.0.0.0");
    const istiod = await startIstiod({
      files: { "mesh.yaml": MESH, "conf/one.yaml": entry("1.one.test") },
      env: { GRPC_ADDR: `0.0.0.0:${port}`, GRPC_KEEPALIVE_INTERVAL: "1s", GRPC_KEEPALIVE_TIMEOUT: "6s" },
    });
    const friend = subscribe({
      ...{ port, variant: "delta", typeUrl: CLUSTER_TYPE },
      node: { id: "sidecar~10.0.1.1~friend.shop~shop.svc.cluster.local" },
      secure: { credentials: credentials.createInsecure(), token: token() },
    });
    await eventually("a proxy is served", () => friend.length > 0);
    const handles = handlesOf(istiod);
    openStreams(machine, port);
    await eventually("those of the machine are served", async () => (await istiod.metric("pilot_xds")) === LOST + 1);
    pullCable(machine);
    const had = friend.length;
    await istiod.write("conf/one.yaml", entry("2.one.test"));
    await eventually("a change arrives where it can", () => friend.length > had);
    await eventually("the lost ones are let go of", async () => (await istiod.metric("pilot_xds")) === 1);
    await eventually("their handles are closed", () => handlesOf(istiod) <= handles + 2);
    assert.equal((await fetch(`http://127.0.0.1:${istiod.httpPort}/ready`)).status, 200);
  });
});
