import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { type Cluster, clusterImpossible, startCluster } from "../cluster/start-cluster.ts";
import { watchEndpoints } from "../support/assignments.ts";
import { addNamespaces, addPod, installCrds, serviceYaml, sliceYaml } from "../support/cluster-objects.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { tellOfCluster } from "../support/remote-secret.ts";
import { eventually } from "../support/wait.ts";

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

const WEB = "outbound|80||web.shop.svc.cluster.local";
const LONG_MS = 60_000;

describe.skipIf(reason !== undefined)("several clusters", () => {
  let east: Cluster;
  let west: Cluster;
  beforeAll(async () => {
    [east, west] = await Promise.all([startCluster({ controllerManager: false }), startCluster({ controllerManager: false })]);
    for (const cluster of [east, west]) await addNamespaces(cluster, "shop", "istio-system");
    await east.client.apply(serviceYaml("web") + sliceYaml("web", ["10.1.0.1"]));
    await west.client.apply(serviceYaml("web") + sliceYaml("web", ["10.2.0.1"]));
  });
  afterAll(async () => {
    await Promise.all([east?.stop(), west?.stop()]);
  });

  const start = (): Promise<Istiod> =>
    startIstiod({ env: { KUBECONFIG: east.kubeconfig, POD_NAMESPACE: "istio-system", CLUSTER_ID: "east" } });
  const ready = async (istiod: Istiod): Promise<string> => (await fetch(`http://127.0.0.1:${istiod.httpPort}/ready?verbose`)).text();

  const tellOf = (user: unknown): Promise<unknown> => tellOfCluster(east, { name: "west", cluster: west, user });

  it("come, change and go while it runs; endpoints are those of all", async () => {
    const istiod = await start();
    const told = watchEndpoints(istiod.grpcPort, WEB);
    await eventually("what is here", () => told().at(-1)?.join() === "10.1.0.1:8080");
    await tellOf({ token: west.adminToken });
    await eventually("what is there, too", () => told().at(-1)?.join() === "10.1.0.1:8080,10.2.0.1:8080");
    await west.client.apply(sliceYaml("web", ["10.2.0.2"]));
    await eventually("a change there", () => told().at(-1)?.join() === "10.1.0.1:8080,10.2.0.2:8080");
    const before = told().length;
    await tellOf({ token: await west.createServiceAccountToken("istio-system", "default") }); // May read nothing.
    await eventually("the new credential is tried", async () => / is forbidden/.test(await ready(istiod)));
    const nowhere = { ...west, url: `https://127.0.0.1:${await freePort()}` };
    await tellOfCluster(east, { name: "west", cluster: nowhere, user: { token: west.adminToken } });
    await eventually("the new address is tried", async () =>
      /stale for \d+ s: [^"]*127\.0\.0\.1:\d+ cannot be reached/.test(await ready(istiod)),
    );
    // A cluster that nobody knows yet would be waited for no longer than this: what was known of this one stays all the same.
    await systemClock.sleep(6_000);
    await tellOf({ exec: { apiVersion: "client.authentication.k8s.io/v1", command: "/bin/true" } });
    await eventually("a program is refused", () => istiod.log().includes("names a program to run"));
    await tellOf({ token: west.adminToken });
    await west.client.apply(sliceYaml("web", ["10.2.0.3"]));
    await eventually("it is read again", () => told().at(-1)?.join() === "10.1.0.1:8080,10.2.0.3:8080");
    expect(
      told()
        .slice(before)
        .every((endpoints) => endpoints.length === 2),
    ).toBe(true);
    await east.client.delete("Secret", "istio-system/remote-west");
    await eventually("what is there is gone", () => told().at(-1)?.join() === "10.1.0.1:8080");
  });

  it("that are away hold up nobody, and keep what they said", async () => {
    await tellOf({ token: west.adminToken });
    await west.client.apply(sliceYaml("web", ["10.2.0.4"]));
    const istiod = await start();
    const told = watchEndpoints(istiod.grpcPort, WEB);
    await eventually("both", () => told().at(-1)?.length === 2);
    await west.killApiServer();
    await eventually("the loss is told", async () => /k8s:\/\/west[^}]*"ok": ?false/s.test(await ready(istiod)), LONG_MS);
    await eventually("the page tells it", async () => {
      expect(await (await istiod.debug("/debug/clusterz")).json()).toMatchObject([
        { id: "east", syncStatus: "synced" },
        { id: "west", syncStatus: "timeout", staleSince: expect.stringMatching(/^20\d\d-.*Z$/) },
      ]);
      return true;
    });
    await east.client.apply(sliceYaml("web", ["10.1.0.5"]));
    await eventually("the others go on", () => told().at(-1)?.join() === "10.1.0.5:8080,10.2.0.4:8080");
    await istiod.stop();
    await istiod.start();
    const again = watchEndpoints(istiod.grpcPort, WEB);
    await eventually("after a restart, too", () => again().at(-1)?.join() === "10.1.0.5:8080,10.2.0.4:8080", LONG_MS);
    await west.restartApiServer();
    await west.client.apply(sliceYaml("web", ["10.2.0.5"]));
    await eventually("it is back", () => again().at(-1)?.join() === "10.1.0.5:8080,10.2.0.5:8080", LONG_MS);
    expect(again().every((endpoints) => endpoints.length === 2)).toBe(true);
  });

  it("in another network are reached through its gateway", async () => {
    await tellOf({ token: west.adminToken });
    await west.client.patch("Namespace", "istio-system", { body: { metadata: { labels: { "topology.istio.io/network": "n-west" } } } });
    await east.client.patch("Namespace", "istio-system", { body: { metadata: { labels: { "topology.istio.io/network": "n-east" } } } });
    await west.client.apply(`
apiVersion: v1
kind: Service
metadata: {name: east-west, namespace: istio-system, labels: {topology.istio.io/network: n-west}}
spec: {type: LoadBalancer, externalIPs: [192.0.2.7], ports: [{name: tls, port: 15443}]}
`);
    await addPod(west, { name: "api-1", address: "10.2.0.9", labels: { app: "api", "security.istio.io/tlsMode": "istio" } });
    await west.client.apply(serviceYaml("api") + sliceYaml("api", ["10.2.0.9"], { pods: { "10.2.0.9": "api-1" } }));
    const istiod = await start();
    const told = watchEndpoints(istiod.grpcPort, WEB.replace("web", "api"), {
      id: "sidecar~10.9.9.9~client.shop~shop.svc.cluster.local",
      metadata: { NETWORK: "n-east", CLUSTER_ID: "east" },
    });
    await eventually("the gateway stands for it", () => told().at(-1)?.join() === "192.0.2.7:15443");
  });

  it("have machines of their own; a ServiceEntry here selects pods and machines everywhere", async () => {
    await installCrds(west, ["WorkloadEntry"]);
    await installCrds(east, ["ServiceEntry"]);
    await west.client.apply(`
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: vm, namespace: shop, labels: {app: web}}
spec: {address: 10.2.9.9, network: n-east}
---
apiVersion: v1
kind: Service
metadata: {name: machines, namespace: shop}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}
`);
    await east.client.apply(`
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: all, namespace: shop}
spec: {hosts: [all.example.com], ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}], resolution: STATIC, location: MESH_INTERNAL, workloadSelector: {labels: {app: web}}}
`);
    const istiod = await start();
    const node = { id: "sidecar~10.9.9.9~client.shop~shop.svc.cluster.local", metadata: { NETWORK: "n-east", CLUSTER_ID: "east" } };
    for (const host of ["machines.shop.svc.cluster.local", "all.example.com"]) {
      const told = watchEndpoints(istiod.grpcPort, `outbound|80||${host}`, node);
      await eventually(`the machine is behind ${host}`, () => told().at(-1)?.join() === "10.2.9.9:8080");
    }
  });
});
