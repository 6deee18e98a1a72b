import { createServer, request } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { call } from "../support/calls.ts";
import { httpEcho } from "../support/echo.ts";
import { grpcCaller, grpcEcho } from "../support/grpc-echo.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, type ProxyOptions, type RunningProxy, startProxy } from "../support/proxy.ts";
import { SERVICE_HOST, serviceEntry, startServiceMesh } from "../support/service-mesh.ts";

const routes = (http: string): string => `
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: svc, namespace: shop}
spec:
  hosts: [${SERVICE_HOST}]
  gateways: [mesh, edge]
  http: ${http}
`;

const everything = `[{route: [{destination: {host: ${SERVICE_HOST}}}]}]`;

interface Edge {
  readonly port: number;
  readonly proxy: RunningProxy;
}

/** A gateway in front of one service. */
async function startEdge(options: {
  readonly server: number;
  readonly protocol?: string;
  readonly gatewayProtocol?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly mesh?: string;
  readonly metadata?: ProxyOptions["metadata"];
}): Promise<Edge> {
  const [port, inner] = [await freePort(), await freePort()];
  const gateway = `
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {selector: {app: edge}, servers: [{port: {number: ${port}, name: main, protocol: ${options.gatewayProtocol ?? "HTTP"}}, hosts: ["*"]}]}
`;
  const service = serviceEntry(inner, { backends: [{ port: options.server }], protocol: options.protocol ?? "HTTP" });
  const istiod = await startIstiod({
    files: {
      "conf/all.yaml": service + gateway + routes(everything),
      ...(options.mesh !== undefined && { "mesh.yaml": options.mesh }),
    },
    ...(options.env !== undefined && { env: options.env }),
  });
  const proxy = await startProxy({
    xdsPort: istiod.grpcPort,
    name: "edge",
    type: "router",
    address: "127.0.0.8",
    labels: { app: "edge" },
    ...(options.metadata !== undefined && { metadata: options.metadata }),
  });
  await listening(port);
  return { port, proxy };
}

/** Sends bytes as they are and gives everything that comes back. */
const raw = (port: number, text: string): Promise<string> =>
  new Promise((resolve, reject) => {
    let heard = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(text));
    socket.setTimeout(20_000, () => socket.destroy());
    socket.on("data", (chunk) => {
      heard += chunk.toString();
    });
    socket.on("error", reject).on("close", () => resolve(heard));
  });

describe("gRPC", () => {
  it("is carried, in one piece and in streams, and routed by method and metadata", async () => {
    const [one, other] = [await grpcEcho("one"), await grpcEcho("other")];
    const config = routes(`
  - {match: [{uri: {exact: /echo.Echo/Say}, headers: {x-to: {exact: other}}}], route: [{destination: {host: ${SERVICE_HOST}, subset: other}}]}
  - {match: [{uri: {exact: /echo.Echo/Say}, headers: {x-to: {exact: nobody}}}], fault: {abort: {grpcStatus: RESOURCE_EXHAUSTED, percentage: {value: 100}}}, route: [{destination: {host: ${SERVICE_HOST}, subset: one}}]}
  - {route: [{destination: {host: ${SERVICE_HOST}, subset: one}}]}`).replace("gateways: [mesh, edge]", "gateways: [mesh]");
    const mesh = await startServiceMesh({
      backends: [
        { port: one.port, labels: { name: "one" } },
        { port: other.port, labels: { name: "other" } },
      ],
      protocol: "GRPC",
      rule: "subsets: [{name: one, labels: {name: one}}, {name: other, labels: {name: other}}]",
      config,
    });
    const caller = grpcCaller(mesh.target);
    expect(await caller.say("hello")).toBe("one: hello");
    expect(await caller.say("hello", { "x-to": "other" })).toBe("other: hello");
    expect(await caller.say("hello", { "x-to": "nobody" })).toMatch(/^status 8:/);
    expect(await caller.count()).toEqual(["one", "two", "three"]);
    expect(one.calls.map(({ method }) => method)).toEqual(["Say", "Count"]);
    await mesh.proxy.assertNothingRejected();
  });

  it("is tried again when the server is unavailable", async () => {
    const server = await grpcEcho("server", { failures: 2 });
    const mesh = await startServiceMesh({ backends: [{ port: server.port }], protocol: "GRPC" });
    const caller = grpcCaller(mesh.target);
    expect(await caller.say("again")).toBe("server: again");
    expect(server.calls).toHaveLength(3);
    expect(server.calls.map(({ metadata }) => metadata.get("x-envoy-attempt-count")[0])).toEqual(["1", "2", "3"]);
    await mesh.proxy.assertNothingRejected();
  });

  it("is spoken with browsers as gRPC-Web", async () => {
    const server = await grpcEcho("server");
    const edge = await startEdge({ server: server.port, protocol: "GRPC", gatewayProtocol: "GRPC-WEB" });
    const message = Buffer.from("hi");
    const frame = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message]);
    const answer = await new Promise<{ readonly type: string; readonly body: Buffer }>((resolve, reject) => {
      const sent = request(
        {
          port: edge.port,
          host: "127.0.0.1",
          method: "POST",
          path: "/echo.Echo/Say",
          headers: { host: SERVICE_HOST, "content-type": "application/grpc-web+proto" },
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("end", () => resolve({ type: String(response.headers["content-type"]), body: Buffer.concat(chunks) }));
        },
      );
      sent.on("error", reject).end(frame);
    });
    expect(answer.type).toBe("application/grpc-web+proto");
    expect(answer.body.toString("latin1")).toContain("server: hi");
    expect(answer.body.toString("latin1")).toContain("grpc-status:0");
    expect(server.calls.map(({ method }) => method)).toEqual(["Say"]);
    await edge.proxy.assertNothingRejected();
  });
});

describe("HTTP/1", () => {
  it("1.0 is refused, and taken where PILOT_HTTP10 says so", async () => {
    const server = await httpEcho("server");
    const strict = await startEdge({ server: server.port });
    const old = `GET /old HTTP/1.0\r\nhost: ${SERVICE_HOST}\r\n\r\n`;
    expect(await raw(strict.port, old)).toMatch(/^HTTP\/1\.1 426 /);
    const lenient = await startEdge({ server: server.port, env: { PILOT_HTTP10: "true" } });
    expect(await raw(lenient.port, old)).toMatch(/^HTTP\/1\.[01] 200 /);
    expect(server.hits.map(({ url }) => url)).toEqual(["/old"]);
    await lenient.proxy.assertNothingRejected();
  });

  it("keeps the case of headers where the mesh says so", async () => {
    const seen: string[][] = [];
    const app = createServer((message, response) => {
      seen.push(message.rawHeaders);
      response.writeHead(200, { "X-Answer-Case": "yes" }).end();
    });
    await new Promise<void>((resolve) => app.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void app.close());
    const server = (app.address() as AddressInfo).port;
    const edge = await startEdge({ server, mesh: "defaultConfig: {proxyHeaders: {preserveHttp1HeaderCase: true}}\n" });
    const answer = await raw(edge.port, `GET / HTTP/1.1\r\nHost: ${SERVICE_HOST}\r\nX-My-Case: yes\r\nConnection: close\r\n\r\n`);
    expect(seen[0]).toContain("X-My-Case");
    expect(answer).toContain("X-Answer-Case: yes");
    await edge.proxy.assertNothingRejected();
  });
});

describe("headers that proxies add", () => {
  it("are left out where the proxy's own configuration says so, which goes before the mesh's", async () => {
    const server = await httpEcho("server");
    const quiet = {
      proxyHeaders: {
        server: { disabled: true },
        requestId: { disabled: true },
        attemptCount: { disabled: true },
        envoyDebugHeaders: { disabled: true },
      },
    };
    const mesh = "defaultConfig: {proxyHeaders: {server: {value: shop}}}\n";
    const loud = await startEdge({ server: server.port, mesh });
    const loudAnswer = await call({ port: loud.port, host: SERVICE_HOST });
    expect(loudAnswer.headers.server).toBe("shop");
    expect(loudAnswer.headers).toHaveProperty("x-envoy-upstream-service-time");
    expect(server.hits[0]?.headers).toMatchObject({ "x-request-id": expect.any(String), "x-envoy-attempt-count": "1" });
    const silent = await startEdge({ server: server.port, mesh, metadata: { PROXY_CONFIG: quiet } });
    const silentAnswer = await call({ port: silent.port, host: SERVICE_HOST });
    expect(silentAnswer.headers).not.toHaveProperty("server");
    expect(silentAnswer.headers).not.toHaveProperty("x-envoy-upstream-service-time");
    expect(server.hits[1]?.headers).not.toHaveProperty("x-request-id");
    expect(server.hits[1]?.headers).not.toHaveProperty("x-envoy-attempt-count");
    await silent.proxy.assertNothingRejected();
  });

  it("name the client behind as many trusted proxies as the topology says", async () => {
    const server = await httpEcho("server");
    const edge = await startEdge({
      server: server.port,
      mesh: "defaultConfig: {gatewayTopology: {numTrustedProxies: 1, forwardClientCertDetails: SANITIZE}}\n",
    });
    await call({
      port: edge.port,
      host: SERVICE_HOST,
      headers: { "x-forwarded-for": "203.0.113.7, 203.0.113.8", "x-forwarded-client-cert": "forged" },
    });
    expect(server.hits[0]?.headers["x-envoy-external-address"]).toBe("203.0.113.8");
    expect(server.hits[0]?.headers).not.toHaveProperty("x-forwarded-client-cert");
    await edge.proxy.assertNothingRejected();
  });

  it("come from a PROXY header in front, where the topology says there is one", async () => {
    const server = await httpEcho("server");
    const edge = await startEdge({ server: server.port, mesh: "defaultConfig: {gatewayTopology: {proxyProtocol: {}}}\n" });
    const text = `PROXY TCP4 203.0.113.9 127.0.0.1 4000 ${edge.port}\r\nGET / HTTP/1.1\r\nhost: ${SERVICE_HOST}\r\nconnection: close\r\n\r\n`;
    expect(await raw(edge.port, text)).toMatch(/^HTTP\/1\.1 200 /);
    expect(server.hits[0]?.headers["x-forwarded-for"]).toBe("203.0.113.9");
    await edge.proxy.assertNothingRejected();
  });
});
