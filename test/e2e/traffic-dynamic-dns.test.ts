import { describe, expect, it } from "vitest";
import { call } from "../support/calls.ts";
import { httpEcho } from "../support/echo.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
import { startServiceMesh } from "../support/service-mesh.ts";
import { askTls, tlsEcho } from "../support/tls-server.ts";
import { eventually } from "../support/wait.ts";

/** Every name below `localhost` is this machine to every resolver. */
const wildcard = (port: number, protocol: string): string => `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: any, namespace: shop}
spec:
  hosts: ["*.localhost"]
  resolution: DYNAMIC_DNS
  ports: [{number: ${port}, name: main, protocol: ${protocol}}]
`;

describe("resolution DYNAMIC_DNS", () => {
  it("finds the server of a request by the host it names, beside services of another kind, and applies rules", async () => {
    const [server, other] = [await httpEcho("server"), await httpEcho("other")];
    const port = await freePort();
    const config =
      wildcard(port, "HTTP") +
      `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: plain, namespace: shop}
spec: {hosts: [plain.example.com], resolution: STATIC, ports: [{number: ${port}, name: main, protocol: HTTP}], endpoints: [{address: 127.0.0.1, ports: {main: ${other.port}}}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: any, namespace: shop}
spec: {host: "*.localhost", trafficPolicy: {connectionPool: {http: {maxRequestsPerConnection: 1}}, outlierDetection: {consecutive5xxErrors: 5}}}
`;
    const istiod = await startIstiod({ files: { "conf/all.yaml": config } });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9" });
    await listening(port);
    expect((await call({ port, host: `one.localhost:${server.port}`, path: "/one" })).by).toBe("server");
    expect((await call({ port, host: `two.localhost:${other.port}` })).by).toBe("other");
    expect((await call({ port, host: "plain.example.com" })).by).toBe("other");
    expect(server.hits[0]).toMatchObject({ url: "/one", headers: { host: `one.localhost:${server.port}` } });
    await proxy.assertNothingRejected();
  });

  it("finds the server of a TLS connection by the name it asks for", async () => {
    const server = await tlsEcho("server");
    const sidecar = `
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: client, namespace: shop}
spec: {egress: [{port: {number: ${server.port}, protocol: TLS, name: tls}, bind: 127.0.0.2, captureMode: NONE, hosts: ["./*"]}]}
`;
    const istiod = await startIstiod({ files: { "conf/all.yaml": wildcard(server.port, "TLS") + sidecar } });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.9" });
    await listening(server.port, "127.0.0.2");
    expect(await askTls(server.port, "one.localhost", "127.0.0.2")).toBe("server");
    expect(server.asked).toEqual(["one.localhost"]);
    await proxy.assertNothingRejected();
  });
});

describe("outboundTrafficPolicy ALLOW_ANY_DYNAMIC_DNS", () => {
  it("finds hosts nobody declared by their names", async () => {
    const [known, stranger] = [await httpEcho("known"), await httpEcho("stranger")];
    const mesh = await startServiceMesh({
      backends: [known],
      istiod: { files: { "mesh.yaml": "outboundTrafficPolicy: {mode: ALLOW_ANY_DYNAMIC_DNS}\n" } },
    });
    expect((await call(mesh.target)).by).toBe("known");
    expect((await call({ ...mesh.target, host: `anybody.localhost:${stranger.port}` })).by).toBe("stranger");
    await mesh.proxy.assertNothingRejected();
    await mesh.istiod.write(
      "mesh.yaml",
      "outboundTrafficPolicy: {mode: ALLOW_ANY_DYNAMIC_DNS, tls: {mode: SIMPLE, insecureSkipVerify: true}}\n",
    );
    const captured = await startProxy({ xdsPort: mesh.istiod.grpcPort, name: "captured", address: "127.0.0.10", interception: "REDIRECT" });
    await eventually("it is spoken to in TLS", async () => {
      const clusters = await captured.admin("/config_dump?resource=dynamic_active_clusters&name_regex=AllowAnyDynamicDNSCluster");
      return clusters.includes("envoy.transport_sockets.tls");
    });
    await captured.assertNothingRejected();
    await mesh.proxy.assertNothingRejected();
  });
});
