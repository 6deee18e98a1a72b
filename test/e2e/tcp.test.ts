import { describe, expect, it } from "vitest";
import { call, converse } from "../support/calls.ts";
import { httpEcho, tcpEcho } from "../support/echo.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
import { eventually } from "../support/wait.ts";

interface Entry {
  readonly name: string;
  /** Where the sidecar listens for it on loopback. */
  readonly port: number;
  readonly server: number;
  readonly resolution?: "STATIC" | "DNS";
  readonly endpoint?: string;
}

const tcpEntry = ({ name, port, server, resolution = "STATIC", endpoint = "127.0.0.1" }: Entry): string => `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop}
spec:
  hosts: [${name}.example.com]
  location: MESH_INTERNAL
  resolution: ${resolution}
  ports: [{number: ${port}, name: tcp, protocol: TCP}]
  endpoints: [{address: ${endpoint}, ports: {tcp: ${server}}}]
`;

const tcpRoutes = (to: string, port: number): string => `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: db, namespace: shop}
spec:
  hosts: [db.example.com]
  tcp:
  - route: [{destination: {host: ${to}.example.com, port: {number: ${port}}}}]
`;

describe.for(["delta", "sotw"] as const)("TCP through a sidecar over %s xDS", (protocol) => {
  it("carries a protocol in which the server speaks first, and both directions", async () => {
    const db = await tcpEcho("db");
    const port = await freePort();
    const istiod = await startIstiod({ files: { "conf/db.yaml": tcpEntry({ name: "db", port, server: db.port }) } });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.1", protocol });
    await listening(port);
    expect(await converse({ port, say: "select 1\n", lines: 2 })).toEqual(["db", "select 1"]);
    await proxy.assertNothingRejected();
  });

  it("follows a VirtualService to another service and back", async () => {
    const [db, other] = [await tcpEcho("db"), await tcpEcho("other")];
    const [port, otherPort] = [await freePort(), await freePort()];
    const files = {
      "conf/db.yaml": tcpEntry({ name: "db", port, server: db.port }) + tcpEntry({ name: "other", port: otherPort, server: other.port }),
    };
    const istiod = await startIstiod({ files });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.1", protocol });
    await listening(port);
    const answered = async (name: string): Promise<void> =>
      void (await eventually(`${name} answers`, async () => (await converse({ port, lines: 1 }))[0] === name));
    await answered("db");
    await istiod.write("conf/routes.yaml", tcpRoutes("other", otherPort));
    await answered("other");
    await istiod.remove("conf/routes.yaml");
    await answered("db");
    await proxy.assertNothingRejected();
  });
});

describe("services that are found by name", () => {
  it("are reached at what the name resolves to", async () => {
    const db = await tcpEcho("db");
    const port = await freePort();
    const entry = tcpEntry({ name: "db", port, server: db.port, resolution: "DNS", endpoint: "localhost" });
    const istiod = await startIstiod({ files: { "conf/db.yaml": entry } });
    await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.1" });
    await listening(port);
    await eventually("the name is resolved", async () => (await converse({ port, lines: 1 }))[0] === "db");
  });
});

describe.for(["TCP", "MONGO"])("%s at a gateway", (protocol) => {
  it("goes where the VirtualService says", async () => {
    const [db, other] = [await tcpEcho("db"), await tcpEcho("other")];
    const [port, otherPort, edge] = [await freePort(), await freePort(), await freePort()];
    const gateway = `
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {selector: {app: edge}, servers: [{port: {number: ${edge}, name: tcp, protocol: ${protocol}}, hosts: ["*"]}]}
`;
    const routes = (to: string, number: number): string => tcpRoutes(to, number).replace("  tcp:", "  gateways: [edge]\n  tcp:");
    const services = tcpEntry({ name: "db", port, server: db.port }) + tcpEntry({ name: "other", port: otherPort, server: other.port });
    const istiod = await startIstiod({ files: { "conf/services.yaml": services + gateway, "conf/routes.yaml": routes("db", port) } });
    await startProxy({ xdsPort: istiod.grpcPort, type: "router", name: "edge", address: "127.0.0.3", labels: { app: "edge" } });
    await listening(edge);
    expect(await converse({ port: edge, lines: 1 })).toEqual(["db"]);
    await istiod.write("conf/routes.yaml", routes("other", otherPort));
    await eventually("the other one answers", async () => (await converse({ port: edge, lines: 1 }))[0] === "other");
  });
});

const undeclared = (port: number, endpoints: readonly string[]): string => `
apiVersion: v1
kind: Service
metadata: {name: any, namespace: shop}
spec:
  clusterIP: 127.0.0.7
  selector: {app: any}
  ports: [{name: any, port: ${port}, targetPort: ${port}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: any-1, namespace: shop, labels: {kubernetes.io/service-name: any}}
addressType: IPv4
ports: [{name: any, port: ${port}, protocol: TCP}]
endpoints: [{addresses: [${endpoints.join(", ")}], conditions: {ready: true}}]
`;

describe("a port whose protocol nobody declared", () => {
  it("carries HTTP as HTTP: routes apply", async () => {
    const port = await freePort();
    const web = await httpEcho("web", { host: "127.0.1.1", port });
    const routes = `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: any, namespace: shop}
spec:
  hosts: [any]
  http: [{rewrite: {uri: /seen-as-http}, route: [{destination: {host: any}}]}]
`;
    const istiod = await startIstiod({ files: { "conf/any.yaml": undeclared(port, ["127.0.1.1"]), "conf/routes.yaml": routes } });
    await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.1" });
    await listening(port);
    expect((await call({ port, host: "any" })).status).toBe(200);
    expect(web.hits.map(({ url }) => url)).toEqual(["/seen-as-http"]);
  });

  it("carries anything else as bytes", async () => {
    const port = await freePort();
    await tcpEcho("raw", { host: "127.0.1.1", port });
    const istiod = await startIstiod({ files: { "conf/any.yaml": undeclared(port, ["127.0.1.1"]) } });
    await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.1" });
    await listening(port);
    expect(await converse({ port, say: "\u0000\u0001 not HTTP at all\n", lines: 2 })).toEqual(["raw", "\u0000\u0001 not HTTP at all"]);
  });
});
