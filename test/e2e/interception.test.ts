import { describe, expect, it } from "vitest";
import type { Call } from "../support/calls.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { hostsImpossible, type MeshHost, startHosts } from "../support/netns.ts";
import { type RunningProxy, startProxy } from "../support/proxy.ts";
import { relaySocket } from "../support/relay.ts";
import { eventually } from "../support/wait.ts";

const WEB = "10.96.0.10";
const DB = "10.96.0.11";

interface Ports {
  readonly name: string;
  readonly address: string;
  /** `{name, port, targetPort}` of the one port. */
  readonly port: readonly [name: string, port: number, target: number];
  readonly hosts: readonly MeshHost[];
}

/** A Kubernetes Service with a cluster IP, its slice, and a pod for each host. */
const service = ({ name, address, port: [portName, port, target], hosts }: Ports): string => `
---
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop}
spec: {clusterIP: ${address}, selector: {app: ${name}}, ports: [{name: ${portName}, port: ${port}, targetPort: ${target}}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, namespace: shop, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: ${portName}, port: ${target}, protocol: TCP}]
endpoints: [${hosts.map((host) => `{addresses: [${host.address}], conditions: {ready: true}, targetRef: {kind: Pod, name: ${host.name}, namespace: shop}}`).join(", ")}]
`;

const pod = (host: MeshHost): string => `
---
apiVersion: v1
kind: Pod
metadata: {name: ${host.name}, namespace: shop, labels: ${JSON.stringify(labelsOf(host))}}
spec: {containers: [{name: app, image: app}]}
status: {phase: Running, podIP: ${host.address}, podIPs: [{ip: ${host.address}}], conditions: [{type: Ready, status: "True"}]}
`;

const labelsOf = (host: MeshHost): Record<string, string> => ({ app: host.name === "client" ? "client" : "web", version: host.name });

const routes = (rules: string): string => `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec: {host: web, subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: web, namespace: shop}
spec:
  hosts: [web]
  http: ${rules}
`;

/** A service that has a whole range of addresses. */
const range = (addresses: string, { address }: MeshHost): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: range, namespace: shop}
spec:
  hosts: [range.example.com]
  addresses: [${addresses}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 5433, name: tcp, protocol: TCP}]
  endpoints: [{address: ${address}, ports: {tcp: 5432}}]
`;

const toSubset = (subset: string): string => `[{route: [{destination: {host: web, subset: ${subset}}}]}]`;

interface World {
  readonly istiod: Istiod;
  readonly client: MeshHost;
  readonly v1: MeshHost;
  readonly v2: MeshHost;
  readonly proxies: Readonly<Record<"client" | "v1" | "v2", RunningProxy>>;
}

/** Three hosts, each with its Envoy: a client, and two that serve the versions of a web service; the first serves a database, too. */
async function startWorld(
  files: (hosts: Readonly<Record<"client" | "v1" | "v2", MeshHost>>) => Readonly<Record<string, string>>,
): Promise<World> {
  const hosts = await startHosts(["client", "v1", "v2"]);
  const istiod = await startIstiod({ files: { "conf/pods.yaml": Object.values(hosts).map(pod).join(""), ...files(hosts) } });
  const socket = await relaySocket(istiod.grpcPort);
  const start = (host: MeshHost): Promise<RunningProxy> =>
    startProxy({ xdsPort: socket, name: host.name, address: host.address, labels: labelsOf(host), interception: "REDIRECT", host });
  const [client, v1, v2] = await Promise.all([start(hosts.client), start(hosts.v1), start(hosts.v2)]);
  return { istiod, ...hosts, proxies: { client, v1, v2 } };
}

/** Where Envoy's own connections to the workload come from: proof that a request went through the proxy at the receiving end. */
const FROM_PROXY = "127.0.0.6";

const impossible = hostsImpossible();
if (impossible !== undefined) console.warn(`transparent interception is not tested: ${impossible}`);

describe.skipIf(impossible !== undefined)("transparent interception between hosts", () => {
  it("takes HTTP to a service address through both proxies, where the rules say", async () => {
    const world = await startWorld(({ v1, v2 }) => ({
      "conf/web.yaml": service({ name: "web", address: WEB, port: ["http", 80, 8080], hosts: [v1, v2] }),
      "conf/routes.yaml": routes(toSubset("v1")),
    }));
    const { client, v1, v2, proxies, istiod } = world;
    await v1.ask("http", { name: "v1", port: 8080 });
    await v2.ask("http", { name: "v2", port: 8080 });
    const target: Call = { address: WEB, port: 80, host: "web.shop", path: "/hello" };
    const answered = async (by: string): Promise<boolean> => (await client.ask("call", target)).by === by;

    expect(await answered("v1")).toBe(true);
    expect(await v1.ask("hits", { port: 8080 })).toEqual([{ url: "/hello", from: FROM_PROXY }]);
    expect(await proxies.client.stat("cluster.outbound|80|v1|web.shop.svc.cluster.local.upstream_rq_total")).toBe(1);
    expect(await proxies.v1.stat("cluster.inbound|8080||.upstream_rq_total")).toBe(1);

    await istiod.write("conf/routes.yaml", routes(toSubset("v2")));
    await eventually("the other host answers", () => answered("v2"));
    expect((await v2.ask("hits", { port: 8080 })).at(-1)).toEqual({ url: "/hello", from: FROM_PROXY });
    for (const proxy of Object.values(proxies)) await proxy.assertNothingRejected();
  });

  it("takes TCP to a service address through both proxies, also where the server speaks first", async () => {
    const { client, v1, proxies } = await startWorld((hosts) => ({
      "conf/db.yaml": service({ name: "db", address: DB, port: ["tcp-db", 5432, 5432], hosts: [hosts.v1] }).replace(
        "{app: db}",
        "{app: web, version: v1}",
      ),
      "conf/range.yaml": range("10.99.0.0/16", hosts.v1),
    }));
    await v1.ask("tcp", { name: "db", port: 5432 });
    for (const address of ["10.99.1.2", "10.99.200.7"])
      expect(await client.ask("converse", { address, port: 5433, say: "any address\n", lines: 2 })).toEqual(["db", "any address"]);
    expect(await proxies.client.stat("cluster.outbound|5433||range.example.com.upstream_cx_total")).toBe(2);
    expect(await client.ask("converse", { address: DB, port: 5432, say: "select 1\n", lines: 2 })).toEqual(["db", "select 1"]);
    expect(await v1.ask("hits", { port: 5432 })).toEqual(Array(3).fill({ url: "", from: FROM_PROXY }));
    expect(await proxies.client.stat("cluster.outbound|5432||db.shop.svc.cluster.local.upstream_cx_total")).toBe(1);
    expect(await proxies.v1.stat("cluster.inbound|5432||.upstream_cx_total")).toBe(3);
  });

  it("takes HTTP and TCP for a pod of a headless service, or where a rule leaves the choice to the client, to that very pod", async () => {
    const { client, v1, v2, proxies } = await startWorld((hosts) => ({
      "conf/web.yaml": service({ name: "web", address: "None", port: ["http", 8080, 8080], hosts: [hosts.v1, hosts.v2] }),
      "conf/db.yaml": service({ name: "db", address: "None", port: ["tcp-db", 5432, 5432], hosts: [hosts.v1, hosts.v2] }).replace(
        "{app: db}",
        "{app: web}",
      ),
      "conf/direct.yaml": `${service({ name: "direct", address: WEB, port: ["http", 8081, 8081], hosts: [hosts.v1, hosts.v2] })}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: direct, namespace: shop}
spec: {host: direct, trafficPolicy: {loadBalancer: {simple: PASSTHROUGH}}}
`,
    }));
    for (const host of [v1, v2]) {
      await host.ask("http", { name: host.name, port: 8080 });
      await host.ask("http", { name: `direct ${host.name}`, port: 8081 });
      await host.ask("tcp", { name: host.name, port: 5432 });
    }
    for (const { address, name } of [v1, v2, v1]) {
      expect((await client.ask("call", { address, port: 8080, host: "web.shop:8080" })).by).toBe(name);
      expect((await client.ask("call", { address, port: 8080, host: `${name}.web.shop:8080` })).by).toBe(name);
      expect(await client.ask("converse", { address, port: 5432, say: "x\n", lines: 2 })).toEqual([name, "x"]);
      expect((await client.ask("call", { address, port: 8081, host: "direct.shop:8081" })).by).toBe(`direct ${name}`);
    }
    expect(await proxies.client.stat("cluster.outbound|8081||direct.shop.svc.cluster.local.upstream_rq_total")).toBe(3);
    expect((await v2.ask("hits", { port: 8080 })).map(({ from }) => from)).toEqual([FROM_PROXY, FROM_PROXY]);
    expect(await proxies.client.stat("cluster.outbound|8080||web.shop.svc.cluster.local.upstream_rq_total")).toBe(6);
    expect(await proxies.client.stat("cluster.outbound|5432||db.shop.svc.cluster.local.upstream_cx_total")).toBe(3);
    for (const proxy of Object.values(proxies)) await proxy.assertNothingRejected();
  });

  it("tells HTTP from other protocols on ports that nobody declared, at both ends", async () => {
    const { client, v1, v2, proxies } = await startWorld((hosts) => ({
      "conf/any.yaml":
        service({ name: "any-web", address: WEB, port: ["any", 9090, 9090], hosts: [hosts.v1] }).replace(
          "{app: any-web}",
          "{app: web, version: v1}",
        ) +
        service({ name: "any-raw", address: DB, port: ["any", 9091, 9091], hosts: [hosts.v2] }).replace(
          "{app: any-raw}",
          "{app: web, version: v2}",
        ),
    }));
    await v1.ask("http", { name: "web", port: 9090 });
    await v2.ask("tcp", { name: "raw", port: 9091 });
    expect((await client.ask("call", { address: WEB, port: 9090, host: "any-web.shop" })).by).toBe("web");
    expect(await proxies.v1.stat("cluster.inbound|9090||.upstream_cx_http1_total")).toBe(1);
    expect(await client.ask("converse", { address: DB, port: 9091, say: "raw bytes\n", lines: 2 })).toEqual(["raw", "raw bytes"]);
    expect(await proxies.v2.stat("cluster.inbound|9091||.upstream_cx_total")).toBe(1);
    expect(await proxies.v2.stat("cluster.inbound|9091||.upstream_cx_http1_total")).toBe(0);
  });

  it("lets through what no service claims, until only the registry may be called", async () => {
    const { client, v1, proxies, istiod } = await startWorld(() => ({}));
    await v1.ask("http", { name: "stranger", port: 9999 });
    await v1.ask("tcp", { name: "raw", port: 9998 });
    const stranger: Call = { address: v1.address, port: 9999, host: "stranger.example.com" };
    expect((await client.ask("call", stranger)).by).toBe("stranger");
    expect(await client.ask("converse", { address: v1.address, port: 9998, say: "x\n", lines: 2 })).toEqual(["raw", "x"]);
    expect(await proxies.client.stat("cluster.PassthroughCluster.upstream_cx_total")).toBe(2);
    expect(await proxies.v1.stat("cluster.InboundPassthroughCluster.upstream_cx_total")).toBe(2);
    expect(await v1.ask("hits", { port: 9999 })).toEqual([{ url: "/", from: FROM_PROXY }]);

    await istiod.write("mesh.yaml", "outboundTrafficPolicy: {mode: REGISTRY_ONLY}\n");
    await eventually("strangers are refused", () =>
      client.ask("call", stranger).then(
        () => false,
        () => true,
      ),
    );
  });
});
