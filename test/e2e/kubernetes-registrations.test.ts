import type { JsonObject } from "@bufbuild/protobuf";
import { afterAll, assert, beforeAll, describe, expect, it } from "vitest";
import { accessObjects } from "../../src/install/access.ts";
import { DEFAULT_INSTALL } from "../../src/install/install-options.ts";
import { type Cluster, clusterImpossible, type KubeObject, startCluster } from "../cluster/start-cluster.ts";
import { CART_GROUP, CART_MEMBER, latestMembers, watchCarts } from "../support/cart-machines.ts";
import { addNamespaces, clusterRead, installCrds } from "../support/cluster-objects.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { openVmStream, type VmStream } from "../support/vm-agent.ts";
import { eventually } from "../support/wait.ts";

/*
 * Machines that register themselves with one of several replicas. The others, and other control planes, know them from the cluster.
 */

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

const OBJECTS = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: cart, namespace: shop}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: written, namespace: shop, labels: {app: cart}, annotations: {proxy.istio.io/health-checks-enabled: "true"}}
spec: {address: 10.9.0.9, serviceAccount: cart, ports: {http: 8080}}
---${CART_GROUP}`;
const WRITTEN = { WORKLOAD_ENTRY: "written", SERVICE_ACCOUNT: "cart" };
const ENTRY = "shop/carts-10.9.0.1";

interface Entry extends KubeObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[] };
}

describe.skipIf(reason !== undefined)("machines that register with one of several replicas", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster();
    await addNamespaces(cluster, "shop", "istio-system");
    await installCrds(cluster);
    const access = accessObjects(DEFAULT_INSTALL).map((object) => JSON.stringify(object));
    await cluster.client.apply([...access, OBJECTS].join("\n---\n"));
  });
  afterAll(() => cluster?.stop());

  async function start(podName: string): Promise<Istiod> {
    const istiod = await startIstiod({
      files: { "mesh.yaml": "clusterWrites: true\n" },
      env: {
        KUBECONFIG: await cluster.kubeconfigFor("istio-system", "istiod"),
        POD_NAMESPACE: "istio-system",
        POD_NAME: podName,
        PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: "1s",
      },
    });
    await clusterRead(istiod);
    return istiod;
  }

  const machine = async (istiod: Istiod, metadata: JsonObject, address = "10.9.0.1"): Promise<VmStream> => {
    const map = await eventually("the roots are published", () => cluster.client.get("ConfigMap", "shop/istio-ca-root-cert"));
    const roots = (map.data as Readonly<Record<string, string>>)["root-cert.pem"] ?? assert.fail("no roots");
    const token = await cluster.createServiceAccountToken("shop", "cart", { audiences: ["istio-ca"] });
    const stream = await openVmStream(istiod, { token, roots, address, metadata });
    expect(await stream.first).toBe("served");
    return stream;
  };

  const watch = (istiod: Istiod): (() => string) => {
    const answers = watchCarts(istiod);
    return () => latestMembers(answers);
  };
  const seen = (members: () => string, want: string): Promise<boolean> =>
    eventually(`${want} is seen`, () => {
      if (members() !== want) throw new Error(members());
      return true;
    });

  const entryOf = (name = ENTRY): Promise<Entry | undefined> => cluster.client.get<Entry>("WorkloadEntry", name);
  const healthOf = async (name: string): Promise<string | undefined> =>
    (await entryOf(name))?.status?.conditions?.find(({ type }) => type === "Healthy")?.status;

  it("are known to all, with their health, move between replicas, and go when they are gone", async () => {
    const [a, b] = [await start("istiod-a"), await start("istiod-b")];
    const [atA, atB] = [watch(a), watch(b)];
    const first = await machine(a, CART_MEMBER);
    first.health();
    await seen(atB, "10.9.0.1:8080, 10.9.0.9:8080 ill");
    await seen(atA, "10.9.0.1:8080, 10.9.0.9:8080 ill");
    expect((await entryOf())?.metadata).toMatchObject({
      annotations: { "istio.io/autoRegistrationGroup": "carts", "istio.io/workloadController": "istiod-a" },
      ownerReferences: [{ kind: "WorkloadGroup", name: "carts", controller: true }],
    });
    first.health("it is ill");
    await seen(atB, "10.9.0.1:8080 ill, 10.9.0.9:8080 ill");
    expect(await healthOf(ENTRY)).toBe("False");

    // It goes on with the other replica; the first one, which takes it for gone, does not take it away from there.
    const second = await machine(b, CART_MEMBER);
    second.health();
    await eventually("it belongs to the other", async () =>
      JSON.stringify((await entryOf())?.metadata).includes('"istio.io/workloadController":"istiod-b"'),
    );
    first.close();
    await eventually("the first has forgotten it", () => a.log().includes("a workload that registered itself is gone"));
    await seen(atA, "10.9.0.1:8080, 10.9.0.9:8080 ill");
    expect((await entryOf())?.metadata.annotations).toMatchObject({ "istio.io/connectedAt": expect.any(String) });

    second.close();
    await seen(atA, "10.9.0.9:8080 ill");
    await seen(atB, "10.9.0.9:8080 ill");
    expect(await entryOf()).toBeUndefined();
    for (const { log } of [a, b]) expect(log()).not.toContain("cannot be written");
  });

  it("tell of their health where their entry was written by somebody", async () => {
    const [a, b] = [await start("istiod-a"), await start("istiod-b")];
    const atB = watch(b);
    const stream = await machine(a, WRITTEN, "10.9.0.9");
    await seen(atB, "10.9.0.9:8080 ill");
    stream.health();
    await seen(atB, "10.9.0.9:8080");
    stream.close();
    await seen(atB, "10.9.0.9:8080 ill");
    await eventually("nothing is known of it", async () => (await healthOf("shop/written")) === undefined);
  });

  it("are taken away by another replica where theirs died with them", async () => {
    const [a, b] = [await start("istiod-a"), await start("istiod-b")];
    const atB = watch(b);
    await machine(a, CART_MEMBER);
    await seen(atB, "10.9.0.1:8080, 10.9.0.9:8080 ill");
    await a.stop("SIGKILL");
    const longAgo = new Date(Date.UTC(2026, 0, 1)).toISOString();
    const body = { metadata: { annotations: { "istio.io/connectedAt": longAgo } } };
    await cluster.client.patch("WorkloadEntry", ENTRY, { body });
    await seen(atB, "10.9.0.9:8080 ill");
    expect(await entryOf()).toBeUndefined();
  });
});
