import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, assert, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { installedKinds } from "../../src/kube/discovery.ts";
import { findKubeAccess } from "../../src/kube/kube-access.ts";
import { createKubeClient, type KubeClient } from "../../src/kube/kube-client.ts";
import { LeaderLease } from "../../src/kube/lease.ts";
import { Reflector, type ReflectorTimes } from "../../src/kube/reflector.ts";
import type { KubeObject, ResourceType } from "../../src/kube/resource-type.ts";
import { WATCHED_KINDS } from "../../src/sources/kubernetes/watched-kinds.ts";
import { type Cluster, clusterImpossible, startCluster } from "../cluster/start-cluster.ts";
import { tempDir } from "../support/cleanup.ts";
import { addNamespaces } from "../support/cluster-objects.ts";
import { startRelay } from "../support/relay.ts";
import { eventually } from "../support/wait.ts";

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

const CONFIG_MAPS: ResourceType = { group: "", version: "v1", plural: "configmaps", namespaced: true };
const SERVICES: ResourceType = { group: "", version: "v1", plural: "services", namespaced: true };

describe.skipIf(reason !== undefined)("the client of a cluster", () => {
  let cluster: Cluster;
  let client: KubeClient;
  beforeAll(async () => {
    cluster = await startCluster({ controllerManager: false });
    await addNamespaces(cluster, "shop");
    const access = await findKubeAccess({ env: { KUBECONFIG: cluster.kubeconfig }, clock: systemClock });
    if (access === undefined) throw new Error("no access");
    client = createKubeClient(access, systemClock);
  });
  afterAll(async () => {
    client?.close();
    await cluster?.stop();
  });

  const map = (name: string, data: Readonly<Record<string, string>>, more = {}): KubeObject => ({
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name, namespace: "shop", ...more },
    data,
  });

  it("creates, reads, changes and deletes", async () => {
    const place = { namespace: "shop", name: "one" };
    const made = await client.create(CONFIG_MAPS, map("one", { a: "1" }));
    await expect(client.create(CONFIG_MAPS, map("one", {}))).rejects.toMatchObject({ status: 409, reason: "AlreadyExists" });
    const stale = { resourceVersion: made.metadata.resourceVersion };
    await client.update(CONFIG_MAPS, map("one", { a: "2" }, stale));
    await expect(client.update(CONFIG_MAPS, map("one", { a: "3" }, stale))).rejects.toMatchObject({ isConflict: true, reason: "Conflict" });
    await client.patch(CONFIG_MAPS, place, { as: "merge", body: { data: { b: "1" } } });
    await client.patch(CONFIG_MAPS, place, { as: "json", body: [{ op: "remove", path: "/data/a" }] });
    expect((await client.get(CONFIG_MAPS, place)).data).toEqual({ b: "1" });
    await client.delete(CONFIG_MAPS, place);
    await expect(client.get(CONFIG_MAPS, place)).rejects.toMatchObject({ isNotFound: true });
  });

  it("applies as one of several managers", async () => {
    const place = { namespace: "shop", name: "shared" };
    await client.patch(CONFIG_MAPS, place, { as: "apply", body: map("shared", { a: "1" }), fieldManager: "first" });
    await expect(
      client.patch(CONFIG_MAPS, place, { as: "apply", body: map("shared", { a: "2" }), fieldManager: "second" }),
    ).rejects.toMatchObject({ isConflict: true });
    await client.patch(CONFIG_MAPS, place, { as: "apply", body: map("shared", { a: "2" }), fieldManager: "second", force: true });
    expect((await client.get(CONFIG_MAPS, place)).data).toEqual({ a: "2" });
    await client.patch(CONFIG_MAPS, place, { as: "apply", body: map("shared", { a: "3" }), fieldManager: "second", dryRun: true });
    expect((await client.get(CONFIG_MAPS, place)).data).toEqual({ a: "2" });
  });

  it("writes a status without touching the rest", async () => {
    await cluster.client.apply(
      "{apiVersion: v1, kind: Service, metadata: {name: lb, namespace: shop}, spec: {type: LoadBalancer, ports: [{port: 80}]}}",
    );
    const place = { namespace: "shop", name: "lb", subresource: "status" };
    const body = { spec: { type: "ClusterIP" }, status: { loadBalancer: { ingress: [{ ip: "203.0.113.7", ipMode: "VIP" }] } } };
    const after = await client.patch(SERVICES, place, { as: "merge", body });
    expect(after).toMatchObject({
      spec: { type: "LoadBalancer" },
      status: { loadBalancer: { ingress: [{ ip: "203.0.113.7", ipMode: "VIP" }] } },
    });
  });

  it("lists by pages, and watches from there, by metadata alone where that is enough", async () => {
    for (const name of ["p1", "p2", "p3"]) await client.create(CONFIG_MAPS, map(name, { big: "x" }, { labels: { set: "pages" } }));
    const first = await client.list(CONFIG_MAPS, { namespace: "shop", labelSelector: "set=pages", limit: 2 });
    expect([[...first.items].length, first.continue === ""]).toEqual([2, false]);
    const rest = await client.list(CONFIG_MAPS, { namespace: "shop", labelSelector: "set=pages", limit: 2, continue: first.continue });
    expect([Array.from(rest.items, ({ metadata }) => metadata.name), rest.continue]).toEqual([["p3"], ""]);
    const light = await client.list(CONFIG_MAPS, { namespace: "shop", labelSelector: "set=pages", metadataOnly: true });
    expect(Array.from(light.items, ({ data }) => data)).toEqual([undefined, undefined, undefined]);

    const held = new Map<string, KubeObject>();
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    const reflector = new Reflector<KubeObject>({
      client,
      type: CONFIG_MAPS,
      selection: { namespace: "shop", labelSelector: "set=pages", metadataOnly: true },
      clock: systemClock,
      log: silentLog,
      shape: (object) => object,
      changed: ({ upserts, deletes }) => {
        for (const [key, object] of upserts) held.set(key, object);
        for (const key of deletes) held.delete(key);
      },
    });
    void reflector.run(stop.signal);
    await eventually("all are known", () => held.size === 3);
    await client.delete(CONFIG_MAPS, { namespace: "shop", name: "p2" });
    await client.patch(CONFIG_MAPS, { namespace: "shop", name: "p1" }, { as: "merge", body: { metadata: { labels: { more: "yes" } } } });
    await eventually("both changes", () => held.size === 2 && held.get("shop/p1")?.metadata.labels?.more === "yes");
    expect(held.get("shop/p1")?.data).toBe(undefined);
  });

  /** Follows ConfigMaps of a set: their `value` by name. */
  function followSet(by: Pick<KubeClient, "listEach" | "watch">, set: string, times: Partial<ReflectorTimes>) {
    const held = new Map<string, string>();
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    const reflector = new Reflector<string>({
      client: by,
      type: CONFIG_MAPS,
      selection: { namespace: "shop", labelSelector: `set=${set}` },
      clock: systemClock,
      log: silentLog,
      shape: ({ data }) => (data as Readonly<Record<string, string>> | undefined)?.value,
      changed: ({ upserts, deletes }) => {
        for (const [key, value] of upserts) held.set(key, value);
        for (const key of deletes) held.delete(key);
      },
      times,
    });
    void reflector.run(stop.signal);
    return { held, reflector };
  }

  it("opens a watch anew that carries nothing, and misses nothing by it", async () => {
    const wire = await startRelay({ to: Number(new URL(cluster.url).port) });
    const file = join(await tempDir(), "config");
    await writeFile(file, (await readFile(cluster.kubeconfig, "utf8")).replaceAll(cluster.url, `https://127.0.0.1:${wire.port}`));
    const access = (await findKubeAccess({ env: { KUBECONFIG: file }, clock: systemClock })) ?? assert.fail("no access");
    const far = createKubeClient(access, systemClock);
    onTestFinished(() => far.close());
    await client.create(CONFIG_MAPS, map("w1", { value: "1" }, { labels: { set: "wire" } }));
    const { held, reflector } = followSet(far, "wire", { idle: 1_000 });
    await eventually("it is known", () => held.get("shop/w1") === "1");
    const change = (value: string) =>
      client.patch(CONFIG_MAPS, { namespace: "shop", name: "w1" }, { as: "merge", body: { data: { value } } });
    await change("2");
    await eventually("its watch is open", () => held.get("shop/w1") === "2");
    wire.freeze();
    await change("3");
    await eventually("the change is known", () => held.get("shop/w1") === "3");
    expect([reflector.state.lists, reflector.state.state]).toEqual([1, "ok"]);
  });

  it("finds by comparing with the server what no event told of", async () => {
    const set = (name: string) => client.create(CONFIG_MAPS, map(name, { value: "1" }, { labels: { set: "lost" } }));
    for (const name of ["changed", "deleted", "kept"]) await set(name);
    const deaf: Pick<KubeClient, "listEach" | "watch"> = {
      listEach: client.listEach,
      // What happens is never told.
      async *watch(type, options) {
        for await (const _ of client.watch(type, options)) yield [];
      },
    };
    const { held, reflector } = followSet(deaf, "lost", { check: 100, checkGrace: 50 });
    await eventually("all are known", () => held.size === 3);
    await client.patch(CONFIG_MAPS, { namespace: "shop", name: "changed" }, { as: "merge", body: { data: { value: "2" } } });
    await client.delete(CONFIG_MAPS, { namespace: "shop", name: "deleted" });
    await set("new");
    await eventually("all of it is known", () => [...held].sort().join(" ") === "shop/changed,2 shop/kept,1 shop/new,1");
    expect(reflector.state.differences).toBeGreaterThan(0);
  });

  it("reads of lists in protobuf what it reads of those in JSON, and refusals too", async () => {
    await writeManySorts(cluster);
    for (const kind of WATCHED_KINDS.filter(({ fields }) => fields !== undefined)) {
      const { group, versions, plural, scope } = kind.def;
      const type = { group, version: versions[0] ?? "", plural, namespaced: scope === "Namespaced" };
      const shape = kind.shape(type.version);
      const inProtobuf = await client.list(type, { fields: kind.fields });
      const inJson = await client.list(type);
      expect(inJson.items.length, plural).toBeGreaterThan(1);
      expect(inProtobuf.items.map(({ metadata }) => metadata.resourceVersion)).toEqual(
        inJson.items.map(({ metadata }) => metadata.resourceVersion),
      );
      expect(inProtobuf.items.map((object) => JSON.stringify(shape(object)))).toEqual(
        inJson.items.map((object) => JSON.stringify(shape(object))),
      );
      expect(inProtobuf.resourceVersion).toMatch(/^[1-9]/);
      const refused = client.list({ ...type, plural: "nothings" }, { fields: kind.fields });
      await expect(refused).rejects.toMatchObject({ isNotFound: true, message: expect.stringContaining("could not find") });
      await expect(client.list(type, { fields: kind.fields, continue: "no" })).rejects.toMatchObject({ status: 400, reason: "BadRequest" });
    }
  });

  it("does not mind that kept connections have died", async () => {
    await client.get(SERVICES, { namespace: "default", name: "kubernetes" });
    await cluster.killApiServer();
    await cluster.restartApiServer();
    expect((await client.get(SERVICES, { namespace: "default", name: "kubernetes" })).metadata.name).toBe("kubernetes");
  });

  it("knows what is installed", async () => {
    const wanted = [
      { group: "apps", versions: ["v9", "v1"], plural: "deployments" },
      { group: "nobody.test", versions: ["v1"], plural: "things" },
    ];
    expect([...(await installedKinds(client, wanted))]).toEqual([["apps/deployments", "v1"]]);
  });

  it("elects one leader, and another when that one is gone", async () => {
    const led: string[] = [];
    const join = (holder: string) => {
      const stop = new AbortController();
      onTestFinished(() => stop.abort());
      const lease = new LeaderLease({
        client,
        namespace: "shop",
        name: "istio-leader",
        holder,
        clock: systemClock,
        log: silentLog,
        // So long that nobody loses it on a busy machine who does not stop.
        durationMs: 8_000,
      });
      const done = lease.run(async (signal) => {
        led.push(`${holder} begins`);
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
        led.push(`${holder} ends`);
      }, stop.signal);
      return { lease, done, stop };
    };
    const a = join("a");
    await eventually("a leads", () => a.lease.state.leading);
    const b = join("b");
    await eventually("b knows who leads", () => b.lease.state.holder === "a");
    expect(b.lease.state.leading).toBe(false);
    a.stop.abort();
    await a.done;
    await eventually("b leads", () => b.lease.state.leading);
    expect(led).toEqual(["a begins", "a ends", "b begins"]);
    // One that cannot reach the server stops leading before anybody else may begin.
    const c = join("c");
    cluster.pause("apiserver");
    try {
      await eventually("b stops", () => led.includes("b ends"));
      expect(c.lease.state.leading).toBe(false);
    } finally {
      cluster.resume("apiserver");
    }
    await eventually("one of them leads again", () => [b, c].filter(({ lease }) => lease.state.leading).length === 1);
  });
});

/** Objects of the kinds that are had in protobuf: with all that is read of them, with little, and with what is written though it is empty. */
async function writeManySorts(cluster: Cluster): Promise<void> {
  const pod = (name: string, more: object) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "shop", labels: { app: name }, annotations: { "sidecar.istio.io/inject": "é", other: "x" } },
    spec: { containers: [{ name: "app", image: "i" }], automountServiceAccountToken: false, ...more },
  });
  await cluster.client.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: shop}}");
  const ports = [
    { name: "http", containerPort: 80 },
    { containerPort: 53, protocol: "UDP" },
  ];
  const full = {
    hostNetwork: true,
    nodeName: "n1",
    hostname: "h",
    subdomain: "s",
    containers: [{ name: "app", image: "i", ports: ports.map((one) => ({ ...one, hostPort: one.containerPort })) }],
  };
  await cluster.client.create(pod("plain", {}));
  const { metadata } = await cluster.client.create(pod("full", full));
  const status = {
    phase: "Running",
    podIP: "10.0.0.1",
    podIPs: [{ ip: "10.0.0.1" }, { ip: "fd00::1" }],
    conditions: [
      { type: "Ready", status: "False" },
      { type: "Initialized", status: "True" },
    ],
  };
  const path = "/api/v1/namespaces/shop/pods/full/status";
  await cluster.client.api.call({ method: "PUT", path, body: { ...pod("full", full), metadata, status } });
  await cluster.client.apply(`
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: z}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: full, namespace: shop, labels: {kubernetes.io/service-name: s}}
addressType: IPv4
endpoints:
- addresses: [10.0.0.1]
  conditions: {ready: false, serving: true, terminating: false}
  hostname: h
  nodeName: n1
  zone: z
  hints: {forZones: [{name: z}]}
  targetRef: {kind: Pod, namespace: shop, name: full, uid: "1"}
- addresses: [10.0.0.2]
ports: [{name: "", port: 80}, {name: grpc, port: 81, protocol: TCP, appProtocol: grpc}]
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: empty, namespace: shop}, addressType: IPv6, endpoints: []}
`);
  await writeServices(cluster);
}

async function writeServices(cluster: Cluster): Promise<void> {
  await cluster.client.apply(`
apiVersion: v1
kind: Service
metadata: {name: full, namespace: shop}
spec:
  type: LoadBalancer
  externalIPs: [192.0.2.1, 192.0.2.2]
  selector: {app: full, tier: web}
  ports:
  - {name: http, port: 80, targetPort: web, appProtocol: http2}
  - {name: dns, port: 53, protocol: UDP, targetPort: 5353}
  sessionAffinity: ClientIP
  internalTrafficPolicy: Local
  externalTrafficPolicy: Local
  trafficDistribution: PreferClose
  publishNotReadyAddresses: true
---
{apiVersion: v1, kind: Service, metadata: {name: headless, namespace: shop}, spec: {clusterIP: None, selector: {app: plain}}}
---
{apiVersion: v1, kind: Service, metadata: {name: outside, namespace: shop}, spec: {type: ExternalName, externalName: example.com, ports: [{port: 443}]}}
`);
  await cluster.client.api.call({
    method: "PATCH",
    path: "/api/v1/namespaces/shop/services/full/status",
    contentType: "application/merge-patch+json",
    body: { status: { loadBalancer: { ingress: [{ ip: "203.0.113.1" }, { hostname: "lb.example.com" }] } } },
  });
}
