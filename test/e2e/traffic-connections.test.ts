import { createServer, request } from "node:http";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { call, converse } from "../support/calls.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho, tcpEcho } from "../support/echo.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
import { askTls, tlsEcho } from "../support/tls-server.ts";
import { eventually } from "../support/wait.ts";

interface Entry {
  readonly name: string;
  readonly port: number;
  readonly server: number;
  readonly protocol: "TCP" | "TLS" | "HTTP";
  readonly labels?: Readonly<Record<string, string>>;
}

const entry = ({ name, port, server, protocol, labels = {} }: Entry): string => `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop}
spec:
  hosts: [${name}.example.com]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${port}, name: main, protocol: ${protocol}}]
  endpoints: [{address: 127.0.0.1, ports: {main: ${server}}, labels: ${JSON.stringify(labels)}}]
`;

describe("TLS that is not ended here", () => {
  const routes = (port: number, gateways: string): string => `
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: by-name, namespace: shop}
spec:
  hosts: ["*.example.com"]
  gateways: [${gateways}]
  tls:
  - match: [{sniHosts: [a.example.com]}]
    route: [{destination: {host: a.example.com, port: {number: ${port}}}}]
  - match: [{sniHosts: ["*.example.com"]}]
    route: [{destination: {host: b.example.com, port: {number: ${port}}}}]
`;

  it("is routed by the name clients say, through a sidecar", async () => {
    const [a, b] = [await tlsEcho("a"), await tlsEcho("b")];
    const port = await freePort();
    const istiod = await startIstiod({
      files: {
        "conf/all.yaml":
          entry({ name: "a", port, server: a.port, protocol: "TLS" }) + entry({ name: "b", port, server: b.port, protocol: "TLS" }),
        "conf/routes.yaml": routes(port, "mesh"),
      },
    });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9" });
    await listening(port);
    expect(await askTls(port, "a.example.com")).toBe("a");
    expect(await askTls(port, "c.example.com")).toBe("b");
    expect([a.asked, b.asked]).toEqual([["a.example.com"], ["c.example.com"]]);
    await istiod.write(
      "conf/routes.yaml",
      routes(port, "mesh").replace("sniHosts: [a.example.com]", "sniHosts: [a.example.com, d.example.com]"),
    );
    await eventually("a has another name", async () => (await askTls(port, "d.example.com")) === "a");
    await proxy.assertNothingRejected();
  });

  it("is routed by the name clients say, through a gateway, and refused under other names", async () => {
    const [a, b] = [await tlsEcho("a"), await tlsEcho("b")];
    const [port, edge] = [await freePort(), await freePort()];
    const gateway = `
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  selector: {app: edge}
  servers: [{port: {number: ${edge}, name: tls, protocol: TLS}, tls: {mode: PASSTHROUGH}, hosts: ["*.example.com"]}]
`;
    const istiod = await startIstiod({
      files: {
        "conf/all.yaml":
          entry({ name: "a", port, server: a.port, protocol: "TLS" }) +
          entry({ name: "b", port, server: b.port, protocol: "TLS" }) +
          routes(port, "shop/edge") +
          gateway,
      },
    });
    const proxy = await startProxy({
      xdsPort: istiod.grpcPort,
      name: "edge",
      type: "router",
      address: "127.0.0.8",
      labels: { app: "edge" },
    });
    await listening(edge);
    expect(await askTls(edge, "a.example.com")).toBe("a");
    expect(await askTls(edge, "x.example.com")).toBe("b");
    expect(await askTls(edge, "stranger.test")).toBeUndefined();
    await proxy.assertNothingRejected();
  });
});

describe("TCP", () => {
  it("is split by weight and told apart by who connects", async () => {
    const [v1, v2, special] = [await tcpEcho("v1"), await tcpEcho("v2"), await tcpEcho("special")];
    const [port, v2Port, specialPort] = [await freePort(), await freePort(), await freePort()];
    const routes = `
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: db, namespace: shop}
spec:
  hosts: [db.example.com]
  tcp:
  - match: [{sourceLabels: {role: admin}, port: ${port}}]
    route: [{destination: {host: special.example.com, port: {number: ${specialPort}}}}]
  - match: [{sourceNamespace: elsewhere}]
    route: [{destination: {host: nowhere.example.com, port: {number: 1}}}]
  - route:
    - {destination: {host: db.example.com, port: {number: ${port}}}, weight: 70}
    - {destination: {host: db2.example.com, port: {number: ${v2Port}}}, weight: 30}
`;
    const config =
      entry({ name: "db", port, server: v1.port, protocol: "TCP" }) +
      entry({ name: "db2", port: v2Port, server: v2.port, protocol: "TCP" }) +
      entry({ name: "special", port: specialPort, server: special.port, protocol: "TCP" }) +
      routes;
    const istiod = await startIstiod({ files: { "conf/all.yaml": config } });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9" });
    await listening(port);
    // Of 400 connections 120 are meant for the second, with a standard deviation of 9: the limits are more than six of them away.
    const heard: string[] = [];
    for (let made = 0; made < 400; made++) heard.push((await converse({ port, lines: 1 }))[0] ?? "");
    const second = heard.filter((name) => name === "v2").length;
    expect(second).toBeGreaterThan(60);
    expect(second).toBeLessThan(190);
    expect(heard.every((name) => name === "v1" || name === "v2")).toBe(true);
    await proxy.stop();
    const admin = await startProxy({ xdsPort: istiod.grpcPort, name: "admin", address: "127.0.0.10", labels: { role: "admin" } });
    await eventually("the admin is served elsewhere", async () => (await converse({ port, lines: 1 }))[0] === "special");
    await admin.assertNothingRejected();
  });

  it("keeps a client at its server where a rule hashes addresses", async () => {
    const servers = [await tcpEcho("a"), await tcpEcho("b"), await tcpEcho("c")];
    const port = await freePort();
    const config = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: db, namespace: shop}
spec:
  hosts: [db.example.com]
  resolution: STATIC
  ports: [{number: ${port}, name: main, protocol: TCP}]
  endpoints: [${servers.map((server) => `{address: 127.0.0.1, ports: {main: ${server.port}}}`).join(", ")}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: db, namespace: shop}
spec: {host: db.example.com, trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true}}, connectionPool: {tcp: {maxConnectionDuration: 60s}}}}
`;
    const istiod = await startIstiod({ files: { "conf/all.yaml": config } });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9" });
    await listening(port);
    const heard = new Set<string>();
    for (let made = 0; made < 12; made++) heard.add((await converse({ port, lines: 1 }))[0] ?? "");
    expect(heard.size).toBe(1);
    await proxy.assertNothingRejected();
  });
});

describe("a Sidecar", () => {
  it("opens the listeners it names, on ports and on sockets, for the hosts it names", async () => {
    const [web, db] = [await httpEcho("web"), await tcpEcho("db")];
    const [webPort, dbPort, own] = [await freePort(), await freePort(), await freePort()];
    const dir = await tempDir();
    const socket = join(dir, "egress.sock");
    const sidecar = `
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: client, namespace: shop}
spec:
  workloadSelector: {labels: {app: client}}
  outboundTrafficPolicy: {mode: REGISTRY_ONLY}
  egress:
  - {port: {number: ${own}, protocol: HTTP_PROXY, name: http}, bind: 127.0.0.2, captureMode: NONE, hosts: ["./*", "~shop/db.example.com"]}
  - {port: {number: ${dbPort}, protocol: TCP, name: tcp}, bind: 127.0.0.3, captureMode: NONE, hosts: ["./db.example.com"]}
  - {port: {number: 0, protocol: HTTP, name: uds}, bind: "unix://${socket}", hosts: ["./web.example.com"]}
`;
    const config =
      entry({ name: "web", port: webPort, server: web.port, protocol: "HTTP" }) +
      entry({ name: "db", port: dbPort, server: db.port, protocol: "TCP" }) +
      sidecar;
    const istiod = await startIstiod({ files: { "conf/all.yaml": config } });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9", labels: { app: "client" } });
    await listening(dbPort, "127.0.0.3");
    await listening(own, "127.0.0.2");
    expect(await converse({ port: dbPort, address: "127.0.0.3", lines: 1 })).toEqual(["db"]);
    expect(await proxy.admin("/listeners")).not.toContain(`:${webPort}`);
    expect((await call({ port: own, address: "127.0.0.2", host: `web.example.com:${webPort}` })).by).toBe("web");
    expect((await call({ port: own, address: "127.0.0.2", host: "stranger.test" })).status).toBe(502);
    expect(await eventually("the socket is there", () => overSocket(socket, `web.example.com:${webPort}`))).toBe(200);
    await proxy.assertNothingRejected();
  });

  it("sends what no service claims through the proxy it names", async () => {
    const [web, way] = [await httpEcho("web"), await httpEcho("way out")];
    const port = await freePort();
    const sidecar = `
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: client, namespace: shop}
spec:
  outboundTrafficPolicy: {mode: ALLOW_ANY, egressProxy: {host: way.example.com, port: {number: 1}}}
  egress: [{hosts: ["./*"]}]
`;
    const config =
      entry({ name: "web", port, server: web.port, protocol: "HTTP" }) +
      entry({ name: "way", port: 1, server: way.port, protocol: "HTTP" }) +
      sidecar;
    const istiod = await startIstiod({ files: { "conf/all.yaml": config } });
    const proxy = await startProxy({
      xdsPort: istiod.grpcPort,
      name: "client",
      address: "127.0.0.9",
      metadata: { UNPRIVILEGED_POD: "true" },
    });
    await listening(port);
    expect((await call({ port, host: "web.example.com" })).by).toBe("web");
    expect((await call({ port, host: "stranger.test" })).by).toBe("way out");
    expect(way.hits.at(-1)?.headers.host).toBe("stranger.test");
    await proxy.assertNothingRejected();
  });

  it("hands what comes in to where the application is, a port or a socket", async () => {
    const app = await httpEcho("app");
    const dir = await tempDir();
    const path = join(dir, "app.sock");
    const onSocket = createServer((_, response) => response.end("socket"));
    await new Promise<void>((resolve) => onSocket.listen(path, resolve));
    onTestFinished(() => void onSocket.close());
    const [port, socketPort] = [await freePort(), await freePort()];
    const sidecar = `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: app, namespace: shop}
spec:
  workloadSelector: {labels: {app: app}}
  inboundConnectionPool: {http: {http1MaxPendingRequests: 100}}
  ingress:
  - {port: {number: ${port}, protocol: HTTP, name: http}, bind: 127.0.0.1, captureMode: NONE, defaultEndpoint: "127.0.0.1:${app.port}"}
  - {port: {number: ${socketPort}, protocol: HTTP, name: uds}, bind: 127.0.0.1, captureMode: NONE, defaultEndpoint: "unix://${path}"}
  egress: [{hosts: ["./*"]}]
`;
    const istiod = await startIstiod({ files: { "conf/all.yaml": sidecar } });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "app", address: "127.0.0.9", labels: { app: "app" } });
    await listening(port);
    await listening(socketPort);
    expect((await call({ port, host: "app" })).by).toBe("app");
    expect((await call({ port: socketPort, host: "app" })).body).toBe("socket");
    expect(app.hits[0]?.headers["x-forwarded-proto"]).toBe("http");
    await proxy.assertNothingRejected();
  });
});

/** The status of an answer over a Unix socket. */
const overSocket = (socketPath: string, host: string): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const sent = request({ socketPath, path: "/", headers: { host } }, (response) => resolve(response.resume().statusCode));
    sent.on("error", reject).end();
  });
