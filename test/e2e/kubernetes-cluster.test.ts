import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type Cluster, clusterImpossible, startCluster } from "../cluster/start-cluster.ts";
import { watchEndpoints } from "../support/assignments.ts";
import { tally } from "../support/calls.ts";
import { addNamespaces, addPod, installCrds, serviceYaml, sliceYaml } from "../support/cluster-objects.ts";
import { httpEcho } from "../support/echo.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
import { SHOP_HOST, shopRoutes, shopService, weights } from "../support/shop.ts";
import { eventually } from "../support/wait.ts";

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

const WEB = "outbound|80||web.shop.svc.cluster.local";

describe.skipIf(reason !== undefined)("a control plane beside a cluster", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ controllerManager: false });
    await addNamespaces(cluster, "shop", "istio-system");
  });
  afterAll(() => cluster?.stop());

  const start = (options: Parameters<typeof startIstiod>[0] = {}): Promise<Istiod> =>
    startIstiod({ ...options, env: { KUBECONFIG: cluster.kubeconfig, POD_NAMESPACE: "istio-system", ...options.env } });

  it("says first which cluster it uses and how, and serves endpoints as they change", async () => {
    await cluster.client.apply(serviceYaml("web") + sliceYaml("web", ["10.1.0.1"]));
    const istiod = await start();
    expect(istiod.log().split("\n")[0]).toMatch(/using the Kubernetes cluster.*cluster=test.*context=test.*mode=reads only/);
    const told = watchEndpoints(istiod.grpcPort, WEB);
    await eventually("the first endpoint", () => told().at(-1)?.join() === "10.1.0.1:8080");
    await cluster.client.apply(sliceYaml("web", ["10.1.0.1", "10.1.0.2"]));
    await eventually("the second endpoint", () => told().at(-1)?.join() === "10.1.0.1:8080,10.1.0.2:8080");
    await cluster.client.apply(sliceYaml("web", ["10.1.0.2"]));
    await eventually("the first is gone", () => told().at(-1)?.join() === "10.1.0.2:8080");
    const ready = await (await fetch(`http://127.0.0.1:${istiod.httpPort}/ready?verbose`)).text();
    expect(ready).toContain("not installed: VirtualService");
  });

  it("waits for the pod of an endpoint, and knows its labels and its node's place", async () => {
    await addNodes(cluster, "n1");
    await addPod(cluster, { name: "other", address: "10.1.0.9" });
    await cluster.client.apply(serviceYaml("api") + sliceYaml("api", ["10.1.0.3"], { pods: { "10.1.0.3": "api-1" } }));
    const istiod = await start();
    const told = watchEndpoints(istiod.grpcPort, WEB.replace("web", "api"));
    await eventually("an answer without the endpoint", () => told().at(-1)?.length === 0);
    await addPod(cluster, { name: "api-1", address: "10.1.0.3", labels: { app: "api" }, node: "n1" });
    await eventually("the endpoint", () => told().at(-1)?.join() === "10.1.0.3:8080");
    const page = await (await istiod.debug("/debug/endpointz")).text();
    expect(page).toContain("eu-n1");
  });

  it("knows what Services say of their clients: nodes, affinity, and servers that are not ready", async () => {
    await addNodes(cluster, "here", "away");
    await addPod(cluster, { name: "client", address: "10.9.9.9", node: "here" });
    const addresses = { "10.1.3.1": "placed-1", "10.1.3.2": "placed-2" };
    await addPod(cluster, { name: "placed-1", address: "10.1.3.1", node: "here" });
    await addPod(cluster, { name: "placed-2", address: "10.1.3.2", node: "away" });
    const slice = (name: string): string => sliceYaml(name, Object.keys(addresses), { pods: addresses });
    await cluster.client.apply(
      serviceYaml("local") + slice("local") + serviceYaml("early") + slice("early").replaceAll('"ready":true', '"ready":false'),
    );
    const change = (name: string, spec: object) => cluster.client.patch("Service", `shop/${name}`, { body: { spec } });
    const istiod = await start();
    const watch = (name: string) => watchEndpoints(istiod.grpcPort, WEB.replace("web", name));
    const local = watch("local");
    await eventually("both nodes", () => local().at(-1)?.length === 2);
    await change("local", { internalTrafficPolicy: "Local" });
    await eventually("its own node alone", () => local().at(-1)?.join() === "10.1.3.1:8080");
    await change("local", { internalTrafficPolicy: "Cluster" });
    await eventually("both nodes again", () => local().at(-1)?.length === 2);

    const client = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "10.9.9.9" });
    const clusterOf = async (name: string): Promise<string> => {
      const dump = JSON.parse(await client.admin("/config_dump?resource=dynamic_active_clusters")) as ClusterDump;
      return JSON.stringify(dump.configs?.find(({ cluster: { name: found } }) => found === WEB.replace("web", name))?.cluster ?? {});
    };
    const health = async (): Promise<string> =>
      (await client.admin("/clusters"))
        .split("\n")
        .filter((line) => /early.*health_flags/.test(line))
        .join();
    await eventually("who is not ready is not used", async () => /failed_eds_health.*failed_eds_health/.test(await health()));
    await change("early", { publishNotReadyAddresses: true });
    await eventually("it is where the Service says so", async () => /healthy.*healthy/.test(await health()));
    expect(await clusterOf("local")).not.toContain("RING_HASH");
    await change("local", { sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } });
    await eventually("clients are kept", async () => (await clusterOf("local")).includes("RING_HASH"));
    await change("local", { sessionAffinity: "None", sessionAffinityConfig: null });
    await eventually("clients are free", async () => /LEAST_REQUEST/.test(await clusterOf("local")));
    await client.assertNothingRejected();
  });

  it("reads kinds that are installed while it runs, and moves real traffic by them", async () => {
    const istiod = await start();
    const [v1, v2, service] = [await httpEcho("v1"), await httpEcho("v2"), await freePort()];
    await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.1" });
    await installCrds(cluster);
    await cluster.client.apply(`${shopService({ service, v1: v1.port, v2: v2.port })}---\n${shopRoutes(weights(100, 0))}`);
    await listening(service);
    const target = { port: service, host: SHOP_HOST };
    await eventually("all to v1", async () => (await tally(10, target)).v1 === 10);
    await cluster.client.apply(shopRoutes(weights(0, 100)));
    await eventually("all to v2", async () => (await tally(10, target)).v2 === 10);
    await cluster.client.delete("VirtualService", "shop/cart");
    await eventually("both", async () => Object.keys(await tally(20, target)).length === 2);
  });

  it("leaves objects of other revisions alone", async () => {
    await installCrds(cluster);
    const entry = (name: string, revision: string): string => `
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop, labels: {istio.io/rev: ${revision}}}
spec: {hosts: [${name}.example.com], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 10.2.0.1}]}
`;
    await cluster.client.apply(entry("ours", "canary") + entry("theirs", "stable"));
    const istiod = await start({ env: { REVISION: "canary" } });
    const hosts = async (): Promise<string> => (await istiod.debug("/debug/registryz")).text();
    await eventually("ours is known", async () => (await hosts()).includes("ours.example.com"));
    expect(await hosts()).not.toContain("theirs.example.com");
    await cluster.client.apply(entry("theirs", "canary") + entry("ours", "stable"));
    await eventually("the labels count", async () => {
      const now = await hosts();
      return now.includes("theirs.example.com") && !now.includes("ours.example.com");
    });
  });

  it("takes MeshConfig from the ConfigMap, under mesh.yaml, and follows it", async () => {
    const mesh = (lines: string): string => `
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data:
  mesh: |
    ${lines}
  meshNetworks: |
    networks: {net1: {gateways: [{address: 10.5.0.1, port: 15443}]}}
`;
    await cluster.client.apply(mesh("trustDomain: from.cluster\n    ingressClass: from-cluster"));
    const istiod = await start({ files: { "mesh.yaml": "ingressClass: from-file\n" } });
    const page = async (): Promise<string> => (await istiod.debug("/debug/mesh")).text();
    await eventually("it is read", async () => /"trustDomain": ?"from.cluster"/.test(await page()));
    expect(await page()).toMatch(/"ingressClass": ?"from-file"/);
    await cluster.client.apply(mesh("trustDomain: from.cluster\n    ingressService: changed"));
    await eventually("the change is in force", async () => /"ingressService": ?"changed"/.test(await page()));
    await cluster.client.apply(mesh("noSuchField: 1"));
    await eventually("the fault is seen", () => istiod.log().includes("noSuchField"));
    expect(await page()).toMatch(/"ingressService": ?"changed"/);
    await cluster.client.delete("ConfigMap", "istio-system/istio");
    await eventually("the defaults are back", async () => !(await page()).includes("from.cluster"));
  });

  it("takes what several control planes share from the ConfigMap that SHARED_MESH_CONFIG names, under its own", async () => {
    const configMap = (name: string, mesh: string): string => `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: ${name}, namespace: istio-system}
data: {mesh: '${mesh}'}
`;
    await cluster.client.apply(
      configMap("istio", "ingressClass: own") + configMap("shared", "{ingressClass: shared, trustDomain: shared.test}"),
    );
    const istiod = await start({ env: { SHARED_MESH_CONFIG: "shared" } });
    const page = async (): Promise<string> => (await istiod.debug("/debug/mesh")).text();
    await eventually("both are read", async () => {
      const text = await page();
      return /"trustDomain": ?"shared.test"/.test(text) && /"ingressClass": ?"own"/.test(text);
    });
    await cluster.client.apply(configMap("shared", "{ingressClass: shared, ingressService: shared}"));
    await eventually("the change of the shared one is in force", async () => /"ingressService": ?"shared"/.test(await page()));
    expect(await page()).toMatch(/"ingressClass": ?"own"/);
    await cluster.client.delete("ConfigMap", "istio-system/istio");
    await eventually("the shared one stands alone", async () => /"ingressClass": ?"shared"/.test(await page()));
    await cluster.client.delete("ConfigMap", "istio-system/shared");
    await eventually("the defaults are back", async () => !/"ingressClass": ?"shared"/.test(await page()));
  });

  it("serves files, and what the cluster said before, while the cluster is away at the start", async () => {
    await cluster.client.apply(serviceYaml("kept") + sliceYaml("kept", ["10.1.0.7"]));
    const istiod = await start({
      files: {
        "conf/own.yaml": `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: own, namespace: shop}
spec: {hosts: [own.example.com], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 10.3.0.1}]}
`,
      },
    });
    // A cluster is not waited for without end: on a busy machine it may still be being read.
    const before = watchEndpoints(istiod.grpcPort, WEB.replace("web", "kept"));
    await eventually("the cluster is read", () => before().at(-1)?.join() === "10.1.0.7:8080");
    await istiod.stop();
    expect(await readFile(join(istiod.home, "var/lib/istio/cluster-state.jsonl"), "utf8")).toContain("Service/shop/kept");
    await cluster.killApiServer();
    onTestFinished(() => (isBack ? undefined : cluster.restartApiServer()));
    let isBack = false;
    await istiod.start();
    const kept = watchEndpoints(istiod.grpcPort, WEB.replace("web", "kept"));
    const own = watchEndpoints(istiod.grpcPort, "outbound|80||own.example.com");
    await eventually("both are served", () => kept().at(-1)?.join() === "10.1.0.7:8080" && own().at(-1)?.join() === "10.3.0.1:80");
    await eventually("the loss is told", async () =>
      /stale for \d+ s/.test(await (await fetch(`http://127.0.0.1:${istiod.httpPort}/ready?verbose`)).text()),
    );
    await cluster.restartApiServer();
    isBack = true;
    await cluster.client.apply(sliceYaml("kept", ["10.1.0.8"]));
    await eventually("the cluster counts again", () => kept().at(-1)?.join() === "10.1.0.8:8080");
    expect(kept().every((endpoints) => endpoints.length > 0)).toBe(true);
  });
});

/** Nodes, each in a zone of its own that is named after it. */
async function addNodes(cluster: Cluster, ...names: readonly string[]): Promise<void> {
  for (const name of names)
    await cluster.client.apply(`
apiVersion: v1
kind: Node
metadata: {name: ${name}, labels: {topology.kubernetes.io/region: eu, topology.kubernetes.io/zone: eu-${name}}}
`);
}

interface ClusterDump {
  readonly configs?: readonly { readonly cluster: { readonly name: string } }[];
}
