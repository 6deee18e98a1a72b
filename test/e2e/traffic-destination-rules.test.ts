import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer as createHttp2Server } from "node:http2";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { type Call, call, converse, tally } from "../support/calls.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho, tcpEcho } from "../support/echo.ts";
import { freePort } from "../support/ports.ts";
import { SERVICE_HOST, startServiceMesh } from "../support/service-mesh.ts";
import { eventually } from "../support/wait.ts";

const echoes = (...names: readonly string[]) => Promise.all(names.map((name) => httpEcho(name)));

/** Listens on a free port until the test ends. */
async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

describe("load balancers", () => {
  // So many that no server is left out by chance: where they are on the ring depends on their ports.
  const users = Array.from({ length: 100 }, (_, index) => `user-${index}`);
  const servedFor = async (requests: readonly Call[]): Promise<readonly string[]> => {
    const names: string[] = [];
    for (const request of requests) names.push((await call(request)).by);
    return names;
  };

  it.for(["ringHash: {minimumRingSize: 512}", "maglev: {tableSize: 4099}", "minimumRingSize: 256"])(
    "send equal headers to one server, different ones to all (%s)",
    async (algorithm) => {
      const backends = await echoes("a", "b", "c");
      const { target, proxy } = await startServiceMesh({
        backends,
        rule: `trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: x-user, ${algorithm}}}}`,
      });
      const requests = users.map((user) => ({ ...target, headers: { "x-user": user } }));
      const first = await servedFor(requests);
      expect(await servedFor(requests)).toEqual(first);
      expect(new Set(first).size).toBe(3);
      await proxy.assertNothingRejected();
    },
  );

  it("send equal query parameters to one server", async () => {
    const { target } = await startServiceMesh({
      backends: await echoes("a", "b", "c"),
      rule: "trafficPolicy: {loadBalancer: {consistentHash: {httpQueryParameterName: id}}}",
    });
    const requests = users.map((user) => ({ ...target, path: `/?id=${user}` }));
    const first = await servedFor(requests);
    expect(await servedFor(requests)).toEqual(first);
    expect(new Set(first).size).toBe(3);
  });

  it("give a client without the cookie one, and keep it at its server", async () => {
    const { target } = await startServiceMesh({
      backends: await echoes("a", "b", "c"),
      rule: "trafficPolicy: {loadBalancer: {consistentHash: {httpCookie: {name: stick, path: /, ttl: 60s, attributes: [{name: SameSite, value: Strict}]}}}}",
    });
    const clients = await Promise.all(Array.from({ length: 30 }, () => call(target)));
    expect(new Set(clients.map(({ by }) => by)).size).toBeGreaterThan(1);
    for (const { headers, by } of clients) {
      const [cookie = ""] = headers["set-cookie"] ?? [];
      expect(cookie).toMatch(/^stick="[0-9a-f]+"; Max-Age=60; Path=\/; (SameSite=Strict; )?HttpOnly/);
      for (const _ of [1, 2, 3]) expect((await call({ ...target, headers: { cookie: cookie.split(";", 1)[0] ?? "" } })).by).toBe(by);
    }
  });

  it("take turns, or choose at random", async () => {
    const backends = await echoes("a", "b", "c");
    const { target, istiod } = await startServiceMesh({ backends, rule: "trafficPolicy: {loadBalancer: {simple: RANDOM}}" });
    const random = await tally(300, target);
    for (const name of ["a", "b", "c"]) expect(random[name]).toBeGreaterThan(40);
    await istiod.write(
      "conf/rule.yaml",
      `{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: svc, namespace: shop}, spec: {host: ${SERVICE_HOST}, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}}`,
    );
    await eventually("servers take turns", async () => {
      const counts = Object.values(await tally(96, target));
      return counts.length === 3 && Math.max(...counts) - Math.min(...counts) <= 12;
    });
  });

  it("weigh endpoints, and choose those of a subset by label", async () => {
    const [a, b, c] = await echoes("a", "b", "c");
    const backends = [
      { port: a?.port ?? 0, weight: 9, labels: { version: "v1" } },
      { port: b?.port ?? 0, weight: 1, labels: { version: "v1" } },
      { port: c?.port ?? 0, labels: { version: "v2" } },
    ];
    const routes = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: svc, namespace: shop}
spec:
  hosts: [${SERVICE_HOST}]
  http:
  - {match: [{uri: {prefix: /v2}}], route: [{destination: {host: ${SERVICE_HOST}, subset: v2}}]}
  - {match: [{uri: {prefix: /v3}}], route: [{destination: {host: ${SERVICE_HOST}, subset: v3}}]}
  - {route: [{destination: {host: ${SERVICE_HOST}, subset: v1}}]}
`;
    const subsets =
      "subsets: [{name: v1, labels: {version: v1}, trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}}, {name: v2, labels: {version: v2}}, {name: v3, labels: {version: v3}}]";
    const { target } = await startServiceMesh({ backends, rule: subsets, config: routes });
    const weighed = await tally(200, target);
    expect(weighed.a).toBeGreaterThan(160);
    expect(weighed.b).toBeGreaterThan(5);
    expect(weighed.c).toBeUndefined();
    expect(await tally(10, { ...target, path: "/v2" })).toEqual({ c: 10 });
    expect((await call({ ...target, path: "/v3" })).status).toBe(503);
  });
});

describe("failing and far-away servers", () => {
  const quick = "outlierDetection: {consecutive5xxErrors: 3, interval: 100ms, baseEjectionTime: 60s, maxEjectionPercent: 100}";

  it("are ejected", async () => {
    const backends = [await httpEcho("good"), await httpEcho("bad", { status: () => 500 })];
    const { target, proxy } = await startServiceMesh({ backends, rule: `trafficPolicy: {${quick}, loadBalancer: {simple: ROUND_ROBIN}}` });
    await eventually("the bad one is out", async () => {
      await tally(8, target);
      return (await proxy.stat(`cluster.outbound|${target.port}||${SERVICE_HOST}.outlier_detection.ejections_active`)) === 1;
    });
    expect(await tally(40, target)).toEqual({ good: 40 });
    expect(backends[1]?.hits.length).toBeLessThan(30);
  });

  it("are ejected for the codes a rule names, and for no others", async () => {
    const backends = [
      await httpEcho("good"),
      await httpEcho("busy", { status: () => 429 }),
      await httpEcho("broken", { status: () => 500 }),
    ];
    const { target } = await startServiceMesh({
      backends,
      rule: `trafficPolicy: {outlierDetection: {consecutive5xxErrors: 2, interval: 100ms, baseEjectionTime: 60s, maxEjectionPercent: 100, outlierDetectionHttpErrorCodes: [429]}, loadBalancer: {simple: ROUND_ROBIN}}`,
    });
    await eventually("only the busy one is out", async () => {
      const before = backends.map(({ hits }) => hits.length);
      await tally(24, target);
      const after = backends.map(({ hits }, index) => hits.length - (before[index] ?? 0));
      return after[1] === 0 && (after[2] ?? 0) > 4;
    });
  });

  it("are left for those of the next region, and taken again when near ones are back", async () => {
    const far = await httpEcho("far");
    const near = await freePort();
    const backends = [
      { port: near, locality: "eu/west/a" },
      { port: far.port, locality: "us/east/a" },
    ];
    const { target } = await startServiceMesh({
      backends,
      rule: "trafficPolicy: {outlierDetection: {consecutive5xxErrors: 1, interval: 100ms, baseEjectionTime: 300ms, maxEjectionPercent: 100}, loadBalancer: {localityLbSetting: {enabled: true, failover: [{from: eu, to: us}]}}}",
      proxy: { labels: { "istio-locality": "eu.west.a" } },
    });
    await eventually("the far one serves", async () => (await tally(8, target)).far === 8);
    const server = await httpEcho("near", { port: near });
    await eventually("the near one serves again", async () => (await tally(8, target)).near === 8);
    expect(server.hits.length).toBeGreaterThanOrEqual(8);
  });

  it("get their share by where the client is", async () => {
    const [west, east] = await echoes("west", "east");
    const { target } = await startServiceMesh({
      backends: [
        { port: west?.port ?? 0, locality: "eu/west" },
        { port: east?.port ?? 0, locality: "eu/east" },
      ],
      rule: 'trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN, localityLbSetting: {enabled: true, distribute: [{from: "eu/west/*", to: {"eu/west/*": 80, "eu/east/*": 20}}]}}}',
      proxy: { labels: { "istio-locality": "eu.west" } },
    });
    const counts = await tally(300, target);
    expect(counts.west).toBeGreaterThan(180);
    expect(counts.east).toBeGreaterThan(15);
  });

  it("are ranked by labels, where a rule names them", async () => {
    const [same, other] = await echoes("same", "other");
    const { target } = await startServiceMesh({
      backends: [
        { port: other?.port ?? 0, labels: { rack: "r2" } },
        { port: same?.port ?? 0, labels: { rack: "r1" } },
      ],
      rule: `trafficPolicy: {${quick}, loadBalancer: {localityLbSetting: {failoverPriority: [rack]}}}`,
      proxy: { labels: { rack: "r1" } },
    });
    expect(await tally(20, target)).toEqual({ same: 20 });
  });
});

describe("connection pools", () => {
  it("turn away what exceeds them", async () => {
    let waiting: (() => void)[] = [];
    const slow = createSlowServer((finish) => waiting.push(finish));
    const port = await listen(slow.server);
    const { target, proxy } = await startServiceMesh({
      backends: [{ port }],
      rule: "trafficPolicy: {connectionPool: {tcp: {maxConnections: 1}, http: {http1MaxPendingRequests: 1}}}",
    });
    const answers = Array.from({ length: 8 }, () => call(target));
    await eventually(
      "the rest is turned away",
      async () => (await proxy.stat(`cluster.outbound|${target.port}||${SERVICE_HOST}.upstream_rq_pending_overflow`)) >= 5,
    );
    const release = setInterval(() => {
      for (const finish of waiting) finish();
      waiting = [];
    }, 10);
    onTestFinished(() => clearInterval(release));
    const done = await Promise.all(answers);
    expect(done.filter(({ status }) => status === 200)).toHaveLength(slow.served());
    const refused = done.filter(({ status }) => status === 503);
    expect(refused.length).toBeGreaterThanOrEqual(5);
    expect(refused.every(({ headers }) => headers["x-envoy-overloaded"] === "true")).toBe(true);
  });

  it("speak HTTP/2 to servers where a rule upgrades, whatever the client speaks", async () => {
    const versions: string[] = [];
    const server = createHttp2Server((request, response) => {
      versions.push(request.httpVersion);
      response.end("ok");
    });
    const port = await listen(server);
    const { target } = await startServiceMesh({
      backends: [{ port }],
      rule: "trafficPolicy: {connectionPool: {http: {h2UpgradePolicy: UPGRADE, maxConcurrentStreams: 10, http2KeepAlive: {interval: 30s, timeout: 5s}}}}",
    });
    expect((await call(target)).body).toBe("ok");
    expect(versions).toEqual(["2.0"]);
  });

  it("close connections after as many requests as a rule says", async () => {
    let connections = 0;
    const echo = await httpEcho("a");
    const relay = createTcpServer((socket) => {
      connections += 1;
      const upstream = new (socket.constructor as new () => typeof socket)();
      upstream.connect(echo.port, "127.0.0.1");
      socket.pipe(upstream).pipe(socket);
      for (const end of [socket, upstream]) end.on("error", () => {});
    });
    const { target } = await startServiceMesh({
      backends: [{ port: await listen(relay) }],
      rule: "trafficPolicy: {connectionPool: {http: {maxRequestsPerConnection: 2}}}",
    });
    for (let made = 0; made < 12; made++) await call(target);
    expect(connections).toBeGreaterThanOrEqual(6);
  });
});

describe("how connections are made", () => {
  it("in TLS the proxy speaks for the client, with the server's name", async () => {
    const dir = await tempDir();
    execFileSync(
      "openssl",
      [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-keyout",
        join(dir, "key"),
        "-out",
        join(dir, "cert"),
        "-days",
        "2",
        "-subj",
        "/CN=svc",
      ],
      { stdio: "ignore" },
    );
    const names: unknown[] = [];
    const server = createHttpsServer(
      { key: readFileSync(join(dir, "key")), cert: readFileSync(join(dir, "cert")) },
      (request, response) => {
        names.push("servername" in request.socket ? request.socket.servername : undefined);
        response.end("secret");
      },
    );
    const port = await listen(server);
    const { target, proxy } = await startServiceMesh({
      backends: [{ port }],
      rule: "trafficPolicy: {tls: {mode: SIMPLE, sni: inside.example.com, insecureSkipVerify: true}}",
    });
    expect((await call(target)).body).toBe("secret");
    expect(names).toEqual(["inside.example.com"]);
    await proxy.assertNothingRejected();
  });

  it("with a PROXY header in front", async () => {
    const heard: string[] = [];
    const server = createTcpServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", (chunk) => {
        heard.push(chunk.toString().split("\r\n", 1)[0] ?? "");
        socket.end("done\n");
      });
    });
    const { target } = await startServiceMesh({
      backends: [{ port: await listen(server) }],
      protocol: "TCP",
      rule: "trafficPolicy: {proxyProtocol: {version: V1}}",
    });
    expect(await converse({ port: target.port, say: "hello\n", lines: 1 })).toEqual(["done"]);
    expect(heard[0]).toMatch(/^PROXY TCP4 127\.0\.0\.1 127\.0\.0\.1 \d+ \d+$/);
  });

  it("through another proxy, which is asked to connect further", async () => {
    const far = await tcpEcho("far");
    const asked: string[] = [];
    const forward = createTcpServer((socket) => {
      socket.on("error", () => {});
      socket.once("data", (chunk) => {
        asked.push(chunk.toString().split("\r\n", 1)[0] ?? "");
        const upstream = new (socket.constructor as new () => typeof socket)();
        upstream.on("error", () => {});
        upstream.connect(far.port, "127.0.0.1", () => {
          socket.write("HTTP/1.1 200 OK\r\n\r\n");
          socket.pipe(upstream).pipe(socket);
        });
      });
    });
    const { target } = await startServiceMesh({
      backends: [{ port: await listen(forward) }],
      protocol: "TCP",
      rule: "trafficPolicy: {tunnel: {protocol: CONNECT, targetHost: far.example.com, targetPort: 9000}}",
    });
    expect(await converse({ port: target.port, say: "ping\n", lines: 2 })).toEqual(["far", "ping"]);
    expect(new Set(asked)).toEqual(new Set(["CONNECT far.example.com:9000 HTTP/1.1"]));
  });

  it("in ways that are hard to see, but that Envoy takes: budgets, warm-up, keepalive, zones, ports", async () => {
    const policy = [
      "loadBalancer: {simple: LEAST_REQUEST, warmup: {duration: 10s, minimumPercent: 5, aggression: 1.5}, zoneAwareLbSetting: {enabled: true, minClusterSize: 3, failover: [{from: eu, to: us}]}}",
      "connectionPool: {tcp: {connectTimeout: 1s, idleTimeout: 60s, maxConnectionDuration: 600s, tcpKeepalive: {probes: 3, time: 10s, interval: 5s}}, http: {http2MaxRequests: 50, maxRetries: 5, idleTimeout: 30s, useClientProtocol: true}}",
      "outlierDetection: {splitExternalLocalOriginErrors: true, consecutiveLocalOriginFailures: 4, consecutiveGatewayErrors: 3, minHealthPercent: 20}",
      "retryBudget: {percent: 25, minRetryConcurrency: 2, budgetInterval: 10s}",
    ].join(", ");
    const { target, proxy } = await startServiceMesh({ backends: await echoes("a"), rule: `trafficPolicy: {${policy}}` });
    expect((await call(target)).by).toBe("a");
    await proxy.assertNothingRejected();
  });
});

/** A server that answers when told to. */
function createSlowServer(take: (finish: () => void) => void): { readonly server: Server; readonly served: () => number } {
  let served = 0;
  const server = createTcpServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", () =>
      take(() => {
        served += 1;
        socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
      }),
    );
  });
  return { server, served: () => served };
}
