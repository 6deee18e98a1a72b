import { afterAll, assert, beforeAll, describe, expect, it } from "vitest";
import type { StatusCondition } from "../../src/config/status/wanted-status.ts";
import { accessObjects } from "../../src/install/access.ts";
import { DEFAULT_INSTALL } from "../../src/install/install-options.ts";
import type { KubeObject } from "../cluster/kube-object.ts";
import { type Cluster, clusterImpossible, startCluster } from "../cluster/start-cluster.ts";
import { addNamespaces, installCrds } from "../support/cluster-objects.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { startProxy } from "../support/proxy.ts";
import { rule, SHOP_HOST, shopGateway, shopRoutes, shopService } from "../support/shop.ts";
import { eventually, says } from "../support/wait.ts";

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

interface Status {
  readonly conditions?: readonly StatusCondition[];
  readonly validationMessages?: readonly unknown[];
  readonly observedGeneration?: number;
}

describe.skipIf(reason !== undefined)("the status of objects in a cluster", () => {
  let cluster: Cluster;
  let places = 0;
  beforeAll(async () => {
    cluster = await startCluster({ controllerManager: false });
    await addNamespaces(cluster, "shop");
    await installCrds(cluster);
    const [v1, v2, service] = [await freePort(), await freePort(), await freePort()];
    await cluster.client.apply([shopService({ service, v1, v2 }), shopGateway(await freePort()), shopRoutes(rule("v1"))].join("---\n"));
  });
  afterAll(() => cluster?.stop());

  type Start = (mesh?: string, env?: Readonly<Record<string, string>>) => Promise<Istiod>;

  /** A namespace for control planes of one test, where nobody else leads, with the rights of `deploy/istiod.yaml`. */
  async function place(): Promise<{ readonly namespace: string; readonly start: Start }> {
    places += 1;
    const namespace = `mesh-${places}`;
    await addNamespaces(cluster, namespace);
    await cluster.client.apply(
      accessObjects({ ...DEFAULT_INSTALL, namespace })
        .map((object) => JSON.stringify(object))
        .join("\n---\n"),
    );
    const access = { KUBECONFIG: await cluster.kubeconfigFor(namespace, "istiod"), POD_NAMESPACE: namespace };
    const start: Start = (mesh = "clusterWrites: true", env = {}) =>
      startIstiod({ files: { "mesh.yaml": `${mesh}\n` }, env: { ...access, ...env } });
    return { namespace, start };
  }

  const get = async (kind: string, name: string): Promise<KubeObject & { readonly status?: Status }> => {
    const object = await cluster.client.get<KubeObject & { readonly status?: Status }>(`${kind}.networking.istio.io`, `shop/${name}`);
    return object ?? assert.fail(`there is no ${kind} ${name}`);
  };

  const conditionOf = ({ status }: { readonly status?: Status }, type: string): StatusCondition | undefined =>
    status?.conditions?.find((one) => one.type === type);

  /** Resolves when a condition of an object is of this generation and fits. */
  const told = (
    kind: string,
    name: string,
    want: Partial<Record<"Accepted" | "Reconciled", RegExp>>,
  ): Promise<KubeObject & { readonly status?: Status }> =>
    eventually(`${kind} ${name} has the status`, async () => {
      const object = await get(kind, name);
      const fits = Object.entries(want).every(([type, text]) => {
        const one = conditionOf(object, type);
        const isNow =
          one?.observedGeneration === object.metadata.generation && object.status?.observedGeneration === object.metadata.generation;
        return isNow && text.test(`${one?.status} ${one?.reason} ${one?.message}`);
      });
      if (!fits) throw new Error(JSON.stringify(object.status));
      return object;
    });

  /** For objects of the namespace. */
  const pushes = (istiod: Istiod): number => [...istiod.log().matchAll(/change applied\s+object=\w+\/shop\//g)].length;
  const written = (istiod: Istiod): Promise<number> => istiod.metric("istiod_status_writes_total", 'outcome="written"');
  const client = (istiod: Istiod, name = "client") => startProxy({ xdsPort: istiod.grpcPort, name, address: "127.0.0.1" });

  it("says that an object is accepted and how many proxies have acknowledged it, beside what others wrote, and is no change to anybody", async () => {
    const theirs = { type: "example.com/Seen", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z", message: "by somebody else" };
    await cluster.client.patch("VirtualService", "shop/cart", { subresource: "status", body: { status: { conditions: [theirs] } } });
    const istiod = await (await place()).start();
    await told("VirtualService", "cart", { Accepted: /^True Valid/, Reconciled: /^Unknown NoProxies/ });
    await client(istiod);
    const first = await told("VirtualService", "cart", {
      Reconciled: /^True Acknowledged 1\/1 connected proxies have acknowledged generation 1$/,
    });
    expect(first.status?.conditions?.[0]).toEqual(theirs);
    for (const kind of ["ServiceEntry", "DestinationRule"])
      await told(kind, "cart", { Accepted: /^True/, Reconciled: /^True Acknowledged 1\/1/ });

    // A status that somebody wipes, and all that istiod writes itself, lead to no push; a change of the object leads to one.
    const before = pushes(istiod);
    await cluster.client.patch("VirtualService", "shop/cart", { subresource: "status", body: { status: { conditions: [theirs] } } });
    await cluster.client.apply(shopRoutes(rule("v2")));
    const second = await told("VirtualService", "cart", { Accepted: /^True/, Reconciled: /^True Acknowledged 1\/1 .* generation 2$/ });
    expect(second.status?.conditions?.[0]).toEqual(theirs);
    await cluster.client.apply(shopRoutes(rule("v1")));
    const third = await told("VirtualService", "cart", { Reconciled: /^True Acknowledged 1\/1 .* generation 3$/ });
    expect(conditionOf(third, "Accepted")?.lastTransitionTime).toBe(conditionOf(second, "Accepted")?.lastTransitionTime);
    expect(pushes(istiod)).toBe(before + 2);

    // What is written is not written again, also when something else is, and another proxy comes.
    await client(istiod, "other");
    await cluster.client.apply(shopService({ service: 18080, v1: 18081, v2: 18082 }));
    await told("ServiceEntry", "cart", { Reconciled: /^True Acknowledged 2\/2 .* generation 2$/ });
    expect((await get("VirtualService", "cart")).metadata.resourceVersion).toBe(third.metadata.resourceVersion);
    expect(await istiod.metric("istiod_status_write_failures_total")).toBe(0);
    await eventually("nothing is left to write", async () => (await istiod.metric("istiod_status_queue_depth")) === 0);
  });

  it("says where and why an object is invalid, what is left out of an EnvoyFilter, and who refused what", async () => {
    const istiod = await (await place()).start();
    await startProxy({ xdsPort: istiod.grpcPort, type: "router", name: "edge", address: "127.0.0.3", labels: { app: "edge" } });
    await cluster.client.apply(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: broken, namespace: shop}
spec: {hosts: [broken.example.com], http: [{redirect: {uri: /a}, route: [{destination: {host: ${SHOP_HOST}}}]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: astray, namespace: shop}
spec: {hosts: [astray.example.com], http: [{route: [{destination: {host: nowhere.example.com}}]}]}
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: patches, namespace: shop}
spec:
  configPatches:
  - {applyTo: CLUSTER, match: {context: GATEWAY}, patch: {operation: ADD, value: {connect_timeout: 1s}}}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: elsewhere, namespace: shop}
spec: {selector: {app: edge}, servers: [{port: {number: ${await freePort()}, name: http, protocol: HTTP}, bind: 192.0.2.77, hosts: ["*"]}]}
`);
    const broken = await told("VirtualService", "broken", {
      Accepted: /^False Invalid .*spec\.http\[0\].*it is left out$/,
      Reconciled: /^False NotAccepted/,
    });
    expect(broken.status?.validationMessages).toMatchObject([{ level: "ERROR", type: { code: expect.stringContaining("field.") } }]);
    await told("VirtualService", "astray", { Accepted: /^True Warnings spec\.http\[0\].*nowhere\.example\.com/, Reconciled: /^True/ });
    await told("EnvoyFilter", "patches", { Accepted: /^True Warnings spec\.configPatches\[0\]: left out.*name/ });
    await told("Gateway", "elsewhere", {
      Accepted: /^True/,
      Reconciled: /^False Rejected edge\.shop rejected LDS 192\.0\.2\.77_.*192\.0\.2\.77.*; 0\/1 connected/,
    });
    // What has nothing to do with it is as it was.
    await told("DestinationRule", "cart", { Reconciled: /^True/ });

    const page = (await (await istiod.debug("/debug/status?namespace=shop&kind=Gateway")).json()) as {
      readonly objects: readonly { readonly object: string; readonly status: Status }[];
    };
    expect(page.objects.map((one) => [one.object, conditionOf(one, "Reconciled")?.reason])).toEqual([
      ["Gateway/shop/edge", "Acknowledged"],
      ["Gateway/shop/elsewhere", "Rejected"],
    ]);

    await cluster.client.apply(`
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: elsewhere, namespace: shop}
spec: {selector: {app: edge}, servers: [{port: {number: ${await freePort()}, name: http, protocol: HTTP}, bind: 127.0.0.9, hosts: ["*"]}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: broken, namespace: shop}
spec: {hosts: [broken.example.com], http: [{route: [{destination: {host: ${SHOP_HOST}}}]}]}
`);
    await told("Gateway", "elsewhere", { Reconciled: /^True Acknowledged 1\/1 .* generation 2$/ });
    const healed = await told("VirtualService", "broken", { Accepted: /^True Valid/, Reconciled: /^True/ });
    expect(healed.status?.validationMessages).toBeUndefined();
  });

  it("is written by one of several replicas, with the proxies of all, and by another when that one goes", async () => {
    const { namespace, start } = await place();
    const replicas = [await start(), await start()];
    await Promise.all(replicas.map((istiod, index) => client(istiod, `client-${index}`)));
    const change = async (subset: string): Promise<void> => void (await cluster.client.apply(shopRoutes(rule(subset))));
    await eventually("both replicas tell of their proxies", async () => {
      const leases = await cluster.client.list("Lease", { namespace, labelSelector: "istiod.istio.io/replica" });
      return leases.filter(({ metadata }) => metadata.annotations?.["istiod.istio.io/status-report"]?.includes('"proxies":1')).length === 2;
    });
    await change("v2");
    await told("VirtualService", "cart", { Reconciled: /^True Acknowledged 2\/2 / });
    const leads = ({ log }: Istiod): boolean => /leading now.*lease=istiod-status\b/.test(log());
    const leader = replicas.find(leads) ?? assert.fail("nobody leads");
    const other = replicas.find((one) => one !== leader) ?? assert.fail("there is one replica only");
    expect(await written(leader)).toBeGreaterThan(0);
    expect([leads(other), await written(other)]).toEqual([false, 0]);

    await leader.stop();
    await change("v1");
    await told("VirtualService", "cart", { Reconciled: /^True Acknowledged 1\/1 / });
    expect(await written(other)).toBeGreaterThan(0);
  });

  it("is left alone where the cluster is only read, where it is switched off, and on objects of other revisions", async () => {
    await cluster.client.apply(
      ["ours", "theirs"]
        .map(
          (name) => `
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: ${name}, namespace: shop, labels: {istio.io/rev: ${name}}}
spec: {egress: [{hosts: ["./*"]}]}
`,
        )
        .join("---\n"),
    );
    const { start } = await place();
    await start("clusterWrites: false", { REVISION: "ours" });
    await start("clusterWrites: true", { REVISION: "ours", PILOT_ENABLE_STATUS: "false" });
    const istiod = await start("clusterWrites: true", { REVISION: "ours", PILOT_ENABLE_CONFIG_DISTRIBUTION_TRACKING: "false" });
    const ours = await told("Sidecar", "ours", { Accepted: /^True Valid/ });
    expect(conditionOf(ours, "Reconciled")).toBeUndefined();
    expect((await get("Sidecar", "theirs")).status).toBeUndefined();
    await says(istiod, /leading now.*lease=istiod-status-ours/);
  });
});
