import { describe, expect, it } from "vitest";
import { type Call, tally } from "../support/calls.ts";
import { type EchoServer, httpEcho } from "../support/echo.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
import { eventually } from "../support/wait.ts";

const V1 = "127.0.1.1";
const V2 = "127.0.1.2";
/** Requests of which each of three servers gets one: Envoy chooses at random, and that one is left out is less likely than once in a million million runs. */
const ENOUGH = 100;

const service = (port: number): string => `
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec:
  clusterIP: 127.0.0.7
  selector: {app: cart}
  ports: [{name: http-web, port: ${port}, targetPort: ${port}}]
`;

const slice = (port: number, endpoints: readonly string[]): string => `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: cart-1, namespace: shop, labels: {kubernetes.io/service-name: cart}}
addressType: IPv4
ports: [{name: http-web, port: ${port}, protocol: TCP}]
endpoints:${endpoints.length === 0 ? " []" : endpoints.map((one) => `\n- ${one}`).join("")}
`;

const ready = (address: string, pod: string): string =>
  `{addresses: [${address}], conditions: {ready: true}, targetRef: {kind: Pod, name: ${pod}, namespace: shop}}`;
const unready = (address: string, pod: string): string =>
  `{addresses: [${address}], conditions: {ready: false}, targetRef: {kind: Pod, name: ${pod}, namespace: shop}}`;

const pod = (name: string, address: string, version: string): string => `
---
apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: shop, labels: {app: cart, version: ${version}}}
spec: {containers: [{name: app, image: app}]}
status: {phase: Running, podIP: ${address}, podIPs: [{ip: ${address}}], conditions: [{type: Ready, status: "True"}]}
`;

const subsets = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop}
spec:
  host: cart
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
`;

const routeTo = (subset: string): string => `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop}
spec: {hosts: [cart], http: [{route: [{destination: {host: cart, subset: ${subset}}}]}]}
`;

interface Cluster {
  readonly istiod: Istiod;
  readonly servers: readonly EchoServer[];
  readonly port: number;
  readonly target: Call;
}

async function startCluster(more: Readonly<Record<string, string>> = {}): Promise<Cluster> {
  const port = await freePort();
  const servers = [await httpEcho("v1", { host: V1, port }), await httpEcho("v2", { host: V2, port })];
  const istiod = await startIstiod({
    files: {
      "conf/service.yaml": service(port),
      "conf/slice.yaml": slice(port, [ready(V1, "cart-v1"), ready(V2, "cart-v2")]),
      "conf/pods.yaml": pod("cart-v1", V1, "v1") + pod("cart-v2", V2, "v2"),
      ...more,
    },
  });
  await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.1" });
  await listening(port);
  return { istiod, servers, port, target: { port, host: "cart.shop.svc.cluster.local" } };
}

/** Servers by the node their pod is on; the first two nodes are in one zone. */
const NODES = [
  { name: "n1", zone: "a", address: "127.0.6.1" },
  { name: "n2", zone: "a", address: "127.0.6.2" },
  { name: "n3", zone: "b", address: "127.0.6.3" },
];

/** Pods on those nodes, and the client's on the first. */
const placedPods = (): string =>
  [...NODES, { name: "n1", zone: "a", address: "127.0.0.1" }]
    .map(
      ({ name, address }, index) =>
        `${pod(`p${index}`, address, "v1").replace("spec: {", `spec: {nodeName: ${name}, `)}---
{apiVersion: v1, kind: Node, metadata: {name: ${name}, labels: {topology.kubernetes.io/region: eu, topology.kubernetes.io/zone: ${NODES.find((node) => node.name === name)?.zone}}}}
`,
    )
    .join("");

/** A Service that says so of its clients, with the servers of these nodes behind it. */
const placedService = (name: string, spec: string, { port, target }: { readonly port: number; readonly target: number }) => ({
  [`conf/${name}.yaml`]: `{apiVersion: v1, kind: Service, metadata: {name: ${name}, namespace: shop}, spec: {${spec}, ports: [{name: http, port: ${port}}]}}`,
  [`conf/${name}-slice.yaml`]: placedSlice(name, target),
});

const placedSlice = (name: string, target: number, { nodes = NODES, isReady = true } = {}): string => `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, namespace: shop, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: http, port: ${target}}]
endpoints: ${JSON.stringify(
  nodes.map((node) => ({
    addresses: [node.address],
    conditions: { ready: isReady },
    nodeName: node.name,
    zone: node.zone,
    targetRef: { kind: "Pod", name: `p${NODES.indexOf(node)}`, namespace: "shop" },
  })),
)}
`;

describe("Kubernetes objects in files", () => {
  it("carry traffic to every endpoint, by every name of the service", async () => {
    const { target } = await startCluster();
    for (const host of ["cart", "cart.shop", "cart.shop.svc", "cart.shop.svc.cluster.local", `cart:${target.port}`]) {
      expect(Object.keys(await tally(ENOUGH, { ...target, host })).sort(), host).toEqual(["v1", "v2"]);
    }
  });

  it("choose endpoints of a subset by the labels of their pods", async () => {
    const { istiod, target } = await startCluster({ "conf/subsets.yaml": subsets, "conf/routes.yaml": routeTo("v1") });
    expect(await tally(16, target)).toEqual({ v1: 16 });
    await istiod.write("conf/routes.yaml", routeTo("v2"));
    await eventually("the second version answers", async () => (await tally(8, target)).v2 === 8);
    await istiod.write("conf/pods.yaml", pod("cart-v1", V1, "v2") + pod("cart-v2", V2, "v1"));
    await eventually("relabelled pods change subsets", async () => (await tally(8, target)).v1 === 8);
  });

  it("follow endpoints that come, go, and are not ready", async () => {
    const { istiod, port, target } = await startCluster();
    await istiod.write("conf/slice.yaml", slice(port, [ready(V1, "cart-v1"), unready(V2, "cart-v2")]));
    await eventually("only the ready one answers", async () => (await tally(16, target)).v1 === 16);
    await istiod.write("conf/slice.yaml", slice(port, []));
    await eventually("nobody answers", async () => (await tally(8, target))["status 503"] === 8);
    await istiod.write("conf/slice.yaml", slice(port, [ready(V2, "cart-v2")]));
    await eventually("the new one answers", async () => (await tally(8, target)).v2 === 8);
  });

  it("reach a pod with an address of each family at either, as one endpoint", async () => {
    const [port, target] = [await freePort(), await freePort()];
    await httpEcho("six", { host: "::1", port: target });
    const both = `{ip: ${V1}}, {ip: "::1"}`;
    const v6 = slice(target, [ready('"::1"', "cart-v1")])
      .replace("cart-1", "cart-6")
      .replace("IPv4", "IPv6");
    const istiod = await startIstiod({
      env: { ISTIO_DUAL_STACK: "true" },
      files: {
        "conf/service.yaml": service(port),
        "conf/slices.yaml": `${slice(target, [ready(V1, "cart-v1")])}---${v6}`,
        "conf/pod.yaml": pod("cart-v1", V1, "v1").replace(`{ip: ${V1}}`, both),
        "conf/routes.yaml": routeTo("v1").replace("http: [{", "http: [{retries: {attempts: 0}, "),
        "conf/subsets.yaml": subsets,
      },
    });
    const proxy = await startProxy({
      xdsPort: istiod.grpcPort,
      name: "client",
      address: "127.0.0.1",
      metadata: { INSTANCE_IPS: "127.0.0.1,::1" },
    });
    await listening(port);
    const call = { port, host: "cart.shop.svc.cluster.local" };
    await eventually("it answers", async () => (await tally(1, call)).six === 1);
    expect(await tally(16, call)).toEqual({ six: 16 });
    await proxy.assertNothingRejected();
  });

  it("lead clients to servers of their node alone, or to near ones first, as the Service says", async () => {
    const [port, target] = [await freePort(), await freePort()];
    for (const { name, address } of NODES) await httpEcho(name, { host: address, port: target });
    const wishes = {
      any: "sessionAffinity: None",
      local: "internalTrafficPolicy: Local",
      zone: "trafficDistribution: PreferClose",
      node: "trafficDistribution: PreferSameNode",
    };
    const all = { ...wishes, kept: `${wishes.zone}, sessionAffinity: ClientIP` };
    const istiod = await startIstiod({
      files: Object.assign(
        { "conf/pods.yaml": placedPods() },
        ...Object.entries(all).map(([name, spec]) => placedService(name, spec, { port, target })),
      ),
    });
    const proxy = await startProxy({ xdsPort: istiod.grpcPort, name: "p3", address: "127.0.0.1" });
    await listening(port);
    const answerers = async (name: string): Promise<string> =>
      Object.keys(await tally(24, { port, host: `${name}.shop` }))
        .sort()
        .join();
    const answer = (want: Readonly<Record<keyof typeof wishes, string>>): Promise<boolean> =>
      eventually(`answers are of ${JSON.stringify(want)}`, async () => {
        const got: Record<string, string> = {};
        for (const name of Object.keys(wishes)) got[name] = await answerers(name);
        expect(got).toEqual(want);
        return true;
      });
    const place = async (nodes: typeof NODES): Promise<void> => {
      for (const name of Object.keys(all)) await istiod.write(`conf/${name}-slice.yaml`, placedSlice(name, target, { nodes }));
    };
    await answer({ any: "n1,n2,n3", local: "n1", zone: "n1,n2", node: "n1" });
    await eventually("a client that is kept is kept near", async () => ["n1", "n2"].includes(await answerers("kept")));
    await place(NODES.slice(1));
    await answer({ any: "n2,n3", local: "status 503", zone: "n2", node: "n2" });
    await eventually("one that is kept goes where others go", async () => (await answerers("kept")) === "n2");
    await place(NODES.slice(2));
    await answer({ any: "n3", local: "status 503", zone: "n3", node: "n3" });
    await eventually("one that is kept goes on, too", async () => (await answerers("kept")) === "n3");
    await proxy.assertNothingRejected();
  });

  it("lead to servers that are not ready where the Service publishes them, and only there", async () => {
    const [port, target] = [await freePort(), await freePort()];
    for (const { name, address } of NODES) await httpEcho(name, { host: address, port: target });
    const files = (publish: boolean) => placedService("early", `publishNotReadyAddresses: ${publish}`, { port, target });
    const unready = { "conf/early-slice.yaml": placedSlice("early", target, { isReady: false }) };
    const istiod = await startIstiod({ files: { "conf/pods.yaml": placedPods(), ...files(true), ...unready } });
    await startProxy({ xdsPort: istiod.grpcPort, name: "p3", address: "127.0.0.1" });
    await listening(port);
    const early = { port, host: "early.shop" };
    expect(Object.keys(await tally(ENOUGH, early)).sort()).toEqual(["n1", "n2", "n3"]);
    await istiod.write("conf/early.yaml", files(false)["conf/early.yaml"] ?? "");
    await eventually("nobody answers", async () => (await tally(8, early))["status 503"] === 8);
  });
});
