import { describe, expect, it } from "vitest";
import { type Call, tally } from "../support/calls.ts";
import { type EchoServer, httpEcho } from "../support/echo.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
import { eventually } from "../support/wait.ts";

const V1 = "127.0.1.1";
const V2 = "127.0.1.2";

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

describe("Kubernetes objects in files", () => {
  it("carry traffic to every endpoint, by every name of the service", async () => {
    const { target } = await startCluster();
    for (const host of ["cart", "cart.shop", "cart.shop.svc", "cart.shop.svc.cluster.local", `cart:${target.port}`]) {
      expect(Object.keys(await tally(24, { ...target, host })).sort(), host).toEqual(["v1", "v2"]);
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
});
