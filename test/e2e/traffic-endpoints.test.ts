import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { call, converse, tally } from "../support/calls.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho, tcpEcho } from "../support/echo.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
import { SERVICE_HOST, startServiceMesh } from "../support/service-mesh.ts";
import { eventually } from "../support/wait.ts";

const entry = (name: string, spec: string): string => `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop}
spec: {hosts: [${name}.test], location: MESH_INTERNAL, ${spec}}
`;

describe("where endpoints may be", () => {
  it("is a socket, an address of IPv6, or another name of a service", async () => {
    const path = join(await tempDir(), "app.sock");
    const app = createServer((_, response) => response.end("socket"));
    await new Promise<void>((resolve) => app.listen(path, resolve));
    onTestFinished(() => void app.close());
    const six = await httpEcho("six", { host: "::1" });
    const http = await freePort();
    const config = [
      entry(
        "socket",
        `resolution: STATIC, ports: [{number: ${http}, name: http, protocol: HTTP}], endpoints: [{address: "unix://${path}"}]`,
      ),
      entry(
        "six",
        `resolution: STATIC, ports: [{number: ${http}, name: http, protocol: HTTP}], endpoints: [{address: "::1", ports: {http: ${six.port}}}]`,
      ),
      `
---
apiVersion: v1
kind: Service
metadata: {name: nickname, namespace: shop}
spec: {type: ExternalName, externalName: six.test, ports: [{name: http, port: ${http}}]}
`,
    ].join("");
    const istiod = await startIstiod({ files: { "conf/all.yaml": config } });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9" });
    await listening(http);
    expect((await call({ port: http, host: "socket.test" })).body).toBe("socket");
    expect((await call({ port: http, host: "six.test" })).by).toBe("six");
    expect((await call({ port: http, host: "nickname.shop.svc.cluster.local" })).by).toBe("six");
    await proxy.assertNothingRejected();
  });

  it("is IPv6 alone, or both families at once", async () => {
    const [six, four] = [await httpEcho("six", { host: "::1" }), await httpEcho("four")];
    const port = await freePort();
    const endpoints = `endpoints: [{address: "::1", ports: {http: ${six.port}}}, {address: 127.0.0.1, ports: {http: ${four.port}}}]`;
    const config = entry("web", `resolution: STATIC, ports: [{number: ${port}, name: http, protocol: HTTP}], ${endpoints}`);
    const istiod = await startIstiod({ files: { "conf/all.yaml": config }, env: { ISTIO_DUAL_STACK: "true" } });
    const only6 = await startProxy({ xdsPort: istiod.grpcPort, name: "only-six", address: "::1", metadata: { INSTANCE_IPS: "::1" } });
    await listening(port, "::1");
    expect(await tally(16, { port, address: "::1", host: "web.test" })).toEqual({ six: 16 });
    await only6.assertNothingRejected();
    await only6.stop();
    const both = await startProxy({
      xdsPort: istiod.grpcPort,
      name: "both",
      address: "127.0.0.9",
      metadata: { INSTANCE_IPS: "127.0.0.9,::1" },
    });
    await listening(port);
    const served = await tally(40, { port, host: "web.test" });
    expect(Object.keys(served).sort()).toEqual(["four", "six"]);
    await listening(port, "::1");
    await both.assertNothingRejected();
  });
});

describe("protocols with filters of their own", () => {
  it("MongoDB and MySQL pass, and Redis is spread by keys where PILOT_ENABLE_REDIS_FILTER says so", async () => {
    const [mongo, mysql] = [await tcpEcho("mongo"), await tcpEcho("mysql")];
    const commands: string[][] = [[], []];
    const redis = await Promise.all(commands.map(redisServer));
    const ports = [await freePort(), await freePort(), await freePort()];
    const one = (protocol: string, index: number, servers: readonly number[]): string =>
      entry(
        protocol.toLowerCase(),
        `resolution: STATIC, ports: [{number: ${ports[index]}, name: main, protocol: ${protocol}}], endpoints: [${servers.map((server) => `{address: 127.0.0.1, ports: {main: ${server}}}`).join(", ")}]`,
      );
    const config = one("MONGO", 0, [mongo.port]) + one("MYSQL", 1, [mysql.port]) + one("REDIS", 2, redis);
    const istiod = await startIstiod({ files: { "conf/all.yaml": config }, env: { PILOT_ENABLE_REDIS_FILTER: "true" } });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9" });
    for (const port of ports) await listening(port);
    expect(await converse({ port: ports[1] ?? 0, lines: 1 })).toEqual(["mysql"]);
    expect(await converse({ port: ports[0] ?? 0, lines: 1 })).toEqual(["mongo"]);
    const keys = Array.from({ length: 100 }, (_, index) => `key-${index}`);
    for (const key of keys) expect(await redisGet(ports[2] ?? 0, key)).toBe(`+${key}`);
    const first = commands.map((list) => [...list].sort());
    expect(first.flat().sort()).toEqual([...keys].sort());
    expect(first.every((list) => list.length > 5)).toBe(true);
    for (const list of commands) list.length = 0;
    for (const key of keys) await redisGet(ports[2] ?? 0, key);
    expect(commands.map((list) => [...list].sort())).toEqual(first);
    await proxy.assertNothingRejected();
  });
});

describe("which server is tried", () => {
  it("follows the client's address, where a rule hashes it", async () => {
    const backends = [await httpEcho("a"), await httpEcho("b"), await httpEcho("c")];
    const { target } = await startServiceMesh({
      backends,
      rule: "trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true, maglev: {}}}}",
    });
    const from = async (address: string): Promise<string> => (await call({ ...target, from: address })).by;
    // So many that one of three servers is left out less than once in ten thousand million runs.
    const addresses = Array.from({ length: 64 }, (_, index) => `127.0.3.${index + 1}`);
    const first = await Promise.all(addresses.map(from));
    expect(new Set(first).size).toBe(3);
    expect(await Promise.all(addresses.map(from))).toEqual(first);
  });

  it("is one of another locality after a failure, where a rule says so", async () => {
    const [near, far] = [await httpEcho("near", { status: () => 503 }), await httpEcho("far")];
    const retries = (more: string): string => `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: svc, namespace: shop}
spec:
  hosts: [${SERVICE_HOST}]
  http: [{retries: {attempts: 2, retryOn: "503", backoff: 1ms${more}}, route: [{destination: {host: ${SERVICE_HOST}}}]}]
`;
    const { target, istiod, proxy } = await startServiceMesh({
      backends: [
        { port: near.port, locality: "eu/west/a" },
        { port: far.port, locality: "us/east/a" },
      ],
      // Never ejected: what leads elsewhere is the retry alone.
      rule: "trafficPolicy: {outlierDetection: {consecutive5xxErrors: 0, consecutiveGatewayErrors: 0}, loadBalancer: {localityLbSetting: {enabled: true, failover: [{from: eu, to: us}]}}}",
      config: retries(""),
      proxy: { labels: { "istio-locality": "eu.west.a" } },
    });
    expect((await call(target)).status).toBe(503);
    expect([near.take(), far.take()]).toEqual([3, 0]);
    await istiod.write("conf/more.yaml", retries(", retryRemoteLocalities: true"));
    await eventually("the far one is tried", async () => (await call(target)).by === "far");
    near.take();
    far.take();
    expect((await call(target)).by).toBe("far");
    // A locality is left after two tries, as Istio has it.
    expect([near.take(), far.take()]).toEqual([2, 1]);
    await proxy.assertNothingRejected();
  });

  it("is the next by priority when one is killed; broken connections and bad answers are counted apart", async () => {
    const killed = await killable("same-rack");
    const [other, bad] = [await httpEcho("other-rack"), await httpEcho("bad", { status: () => 500 })];
    const ejecting =
      "outlierDetection: {splitExternalLocalOriginErrors: true, consecutiveLocalOriginFailures: 1, consecutive5xxErrors: 0, interval: 100ms, baseEjectionTime: 60s, maxEjectionPercent: 100}";
    const { target, proxy } = await startServiceMesh({
      backends: [
        { port: killed.port, labels: { rack: "r1", tier: "t1" } },
        { port: bad.port, labels: { rack: "r2", tier: "t1" } },
        { port: other.port, labels: { rack: "r2", tier: "t2" } },
      ],
      rule: `trafficPolicy: {${ejecting}, loadBalancer: {localityLbSetting: {failoverPriority: [tier, rack]}}}`,
      proxy: { labels: { rack: "r1", tier: "t1" } },
    });
    expect(await tally(16, target)).toEqual({ "same-rack": 16 });
    killed.kill();
    await eventually("the next takes over", async () => (await tally(8, target)).bad === 8);
    // It answers 500 and stays: only failures to connect eject here.
    expect(await tally(24, target)).toEqual({ bad: 24 });
    expect(await proxy.stat(`cluster.outbound|${target.port}||${SERVICE_HOST}.outlier_detection.ejections_active`)).toBe(1);
    expect(other.hits).toHaveLength(0);
  });
});

/** A server that knows `GET` and answers with the key; keys are noted. */
async function redisServer(keys: string[]): Promise<number> {
  const server = createTcpServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      for (const [, key = ""] of chunk.toString().matchAll(/\$3\r\nget\r\n\$\d+\r\n([^\r]+)\r\n/gi)) {
        keys.push(key);
        socket.write(`+${key}\r\n`);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function redisGet(port: number, key: string): Promise<string> {
  const [line = ""] = await converse({ port, say: `*2\r\n$3\r\nGET\r\n$${key.length}\r\n${key}\r\n`, lines: 1 });
  return line.trim();
}

/** A server that can be ended in the middle of a test. */
async function killable(name: string): Promise<{ readonly port: number; kill(): void }> {
  const server = createServer((_, response) => response.writeHead(200, { "x-served-by": name }).end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const kill = (): void => {
    server.close();
    server.closeAllConnections();
  };
  onTestFinished(kill);
  return { port: (server.address() as AddressInfo).port, kill };
}
