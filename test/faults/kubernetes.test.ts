import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { dump } from "js-yaml";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { type Cluster, clusterImpossible, startCluster } from "../cluster/start-cluster.ts";
import { watchClusters, watchEndpoints } from "../support/assignments.ts";
import { tempDir } from "../support/cleanup.ts";
import { addNamespaces, addPod, installCrds, serviceYaml, sliceYaml } from "../support/cluster-objects.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { startRelay } from "../support/relay.ts";
import { eventually } from "../support/wait.ts";

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

const WEB = "outbound|80||web.shop.svc.cluster.local";
/** Under load an API server takes its time to come back. */
const LONG_MS = 120_000;
/** A watch over which nothing comes for this long is opened anew. */
const SILENT_MS = 150_000;
/** So often the server is asked whether it is there. */
const PROBE_MS = 5_000;

const ready = async (istiod: Istiod): Promise<string> => (await fetch(`http://127.0.0.1:${istiod.httpPort}/ready?verbose`)).text();

/** Writes something and drops all versions before it: who wants to go on from an earlier one is told that it is gone. */
async function forgetHistory(etcdUrl: string): Promise<void> {
  const ask = async (path: string, body: unknown): Promise<{ readonly header?: { readonly revision?: string } }> => {
    const answer = await fetch(`${etcdUrl}/v3/kv/${path}`, { method: "POST", body: JSON.stringify(body) });
    expect(answer.status).toBe(200);
    return (await answer.json()) as { readonly header?: { readonly revision?: string } };
  };
  const key = Buffer.from("/elsewhere").toString("base64");
  await ask("put", { key, value: key });
  const { header } = await ask("put", { key, value: key });
  await ask("compaction", { revision: header?.revision, physical: true });
}

describe.skipIf(reason !== undefined)("a cluster that fails", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ controllerManager: false });
    await addNamespaces(cluster, "shop", "bank", "istio-system");
    await installCrds(cluster);
    await cluster.client.apply(serviceYaml("web") + sliceYaml("web", ["10.1.0.1"]));
  });
  afterAll(() => cluster?.stop());

  const start = (options: Parameters<typeof startIstiod>[0] = {}): Promise<Istiod> =>
    startIstiod({ ...options, env: { KUBECONFIG: cluster.kubeconfig, POD_NAMESPACE: "istio-system", ...options.env } });

  it("is missed by nobody while its API server is dead, and nothing of it is lost when it comes back", async () => {
    const istiod = await start({ env: { ISTIO_LOG_LEVEL: "debug" } });
    const [told, clusters] = [watchEndpoints(istiod.grpcPort, WEB), watchClusters(istiod.grpcPort)];
    await eventually("the endpoint is served", () => told().length > 0 && clusters.names().includes(WEB));
    await cluster.killApiServer();
    const awayFor = async (): Promise<number> => Number(/stale for (\d+) s/.exec(await ready(istiod))?.[1] ?? 0);
    await eventually("the loss is told", async () => (await awayFor()) > 0);
    await eventually("it is away for a minute", async () => (await awayFor()) >= 60, LONG_MS);
    expect((await fetch(`http://127.0.0.1:${istiod.httpPort}/ready`)).status).toBe(200);
    const late = watchEndpoints(istiod.grpcPort, WEB, { id: "sidecar~10.9.9.8~late.shop~shop.svc.cluster.local" });
    await eventually("one who comes meanwhile is served what was known", () => late().at(-1)?.join() === "10.1.0.1:8080");
    await forgetHistory(cluster.etcdUrl);
    await cluster.restartApiServer();
    await cluster.client.apply(sliceYaml("web", ["10.1.0.2"]));
    await eventually("what changed since is there", () => told().at(-1)?.join() === "10.1.0.2:8080", LONG_MS);
    // Watches cannot go on where they were: everything is listed again.
    await eventually("it is told", () => istiod.log().includes("listing again"));
    await eventually("all is well", async () => !(await ready(istiod)).includes("stale"), LONG_MS);
    expect(told().every((endpoints) => endpoints.length > 0)).toBe(true);
    expect(clusters.removed()).toEqual([]);
  });

  it("is known to hang when its API server does, and goes on after it", async () => {
    const istiod = await start();
    const told = watchEndpoints(istiod.grpcPort, WEB);
    const before = await eventually("the endpoint is served", () => told().at(-1)?.join());
    cluster.pause("apiserver");
    try {
      await eventually("the hang is told", async () => /stale for \d+ s/.test(await ready(istiod)), LONG_MS);
    } finally {
      cluster.resume("apiserver");
    }
    const next = before === "10.1.0.3:8080" ? "10.1.0.4" : "10.1.0.3";
    await eventually("the server takes changes", async () => (await cluster.client.apply(sliceYaml("web", [next]))) !== undefined, LONG_MS);
    await eventually("the change is there", () => told().at(-1)?.join() === `${next}:8080`, LONG_MS);
    await eventually("all is well", async () => !(await ready(istiod)).includes("stale"), LONG_MS);
    expect(told().every((endpoints) => endpoints.length > 0)).toBe(true);
  });

  it("is asked anew where the wire to it has gone dead and nobody was told", async () => {
    const wire = await startRelay({ to: Number(new URL(cluster.url).port) });
    const config = join(await tempDir(), "config");
    await writeFile(config, kubeconfigOf({ token: cluster.adminToken }, `https://127.0.0.1:${wire.port}`));
    const istiod = await start({ env: { KUBECONFIG: config } });
    const told = watchEndpoints(istiod.grpcPort, WEB);
    await eventually("the endpoint is served", () => told().length > 0);
    // By then the server was asked whether it is there: that connection is kept, and dies with the others.
    await systemClock.sleep(PROBE_MS + 1_000);
    wire.freeze();
    await cluster.client.apply(sliceYaml("web", ["10.1.0.31"]));
    // Soon, since that question gets no answer; had it a connection that lives, only when a watch has been silent for too long.
    await eventually("the change is there", () => told().at(-1)?.join() === "10.1.0.31:8080", SILENT_MS + LONG_MS);
    await eventually("all is well", async () => !(await ready(istiod)).includes("stale"), LONG_MS);
    expect(told().every((endpoints) => endpoints.length > 0)).toBe(true);
  });

  it("is missed by no proxy while its etcd hangs so long that requests time out; writes of that time count, and who led leads on", async () => {
    const env = { ISTIO_LOG_LEVEL: "debug", POD_NAME: "the-leader" };
    const istiod = await start({ files: { "mesh.yaml": "clusterWrites: true\n" }, env });
    const [told, clusters] = [watchEndpoints(istiod.grpcPort, WEB), watchClusters(istiod.grpcPort)];
    await eventually("the endpoint is served", () => told().length > 0 && clusters.names().includes(WEB));
    await eventually("the roots are published", () => cluster.client.get("ConfigMap", "bank/istio-ca-root-cert"));
    cluster.pause("etcd");
    const write = cluster.client.apply(sliceYaml("web", ["10.1.0.21"])).then(
      () => "taken",
      () => "refused",
    );
    try {
      await eventually(
        "requests time out",
        () => /the lease could not be asked for or renewed.*takes too long/.test(istiod.log()),
        LONG_MS,
      );
      const late = watchEndpoints(istiod.grpcPort, WEB, { id: "sidecar~10.9.9.7~late.shop~shop.svc.cluster.local" });
      await eventually("one who comes meanwhile is served what was known", () => (late().at(-1)?.length ?? 0) > 0);
      expect((await fetch(`http://127.0.0.1:${istiod.httpPort}/ready`)).status).toBe(200);
    } finally {
      cluster.resume("etcd");
    }
    if ((await write) === "refused")
      await eventually(
        "it is written after all",
        async () => (await cluster.client.apply(sliceYaml("web", ["10.1.0.21"]))) !== undefined,
        LONG_MS,
      );
    await eventually("the write of that time is there", () => told().at(-1)?.join() === "10.1.0.21:8080", LONG_MS);
    await eventually(
      "a namespace that is made now gets its roots",
      async () => {
        await addNamespaces(cluster, "after-etcd");
        return cluster.client.get("ConfigMap", "after-etcd/istio-ca-root-cert");
      },
      LONG_MS,
    );
    const lease = await cluster.client.get("Lease", "istio-system/istio-namespace-controller-election");
    expect(lease?.spec).toMatchObject({ holderIdentity: "the-leader" });
    await eventually("all is well", async () => !(await ready(istiod)).includes("stale"), LONG_MS);
    expect(told().every((endpoints) => endpoints.length > 0)).toBe(true);
    expect(clusters.removed()).toEqual([]);
    await istiod.stop();
  });

  it("knows us by the token that is in the file now, not by the one that was", async () => {
    const dir = await tempDir();
    await cluster.client.apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: default, namespace: istio-system}]
`);
    await addPod(cluster, { name: "holder", namespace: "istio-system", address: "10.1.9.9" });
    const pod = await cluster.client.get("Pod", "istio-system/holder");
    const boundPod = { name: "holder", uid: String(pod?.metadata.uid) };
    const tokenFile = join(dir, "token");
    const rotate = async (token: string): Promise<void> => {
      await writeFile(`${tokenFile}.new`, token);
      await rename(`${tokenFile}.new`, tokenFile);
    };
    await rotate(await cluster.createServiceAccountToken("istio-system", "default", { boundPod }));
    await writeFile(join(dir, "config"), kubeconfigOf({ tokenFile: "token" }));
    const istiod = await start({ env: { KUBECONFIG: join(dir, "config") } });
    const told = watchEndpoints(istiod.grpcPort, WEB);
    await eventually("the endpoint is served", () => told().length > 0);
    await rotate(await cluster.createServiceAccountToken("istio-system", "default"));
    await cluster.client.delete("Pod", "istio-system/holder", { gracePeriodSeconds: 0 });
    await cluster.killApiServer();
    await cluster.restartApiServer();
    await cluster.client.apply(sliceYaml("web", ["10.1.0.5"]));
    await eventually("the change is there", () => told().at(-1)?.join() === "10.1.0.5:8080", LONG_MS);
    expect(told().every((endpoints) => endpoints.length > 0)).toBe(true);
  });

  it("is read through one namespace by who may read no other", async () => {
    await cluster.client.apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: mesh, namespace: shop}
rules:
- {apiGroups: [""], resources: [services, pods, configmaps], verbs: [get, list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}
- {apiGroups: [networking.istio.io, security.istio.io, telemetry.istio.io, extensions.istio.io], resources: ["*"], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: mesh, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: mesh}
subjects: [{kind: ServiceAccount, name: default, namespace: shop}]
`);
    await cluster.client.apply(serviceYaml("vault", { namespace: "bank" }) + sliceYaml("vault", ["10.1.7.7"], { namespace: "bank" }));
    const istiod = await start({
      files: { "mesh.yaml": "namespaces: [shop]\n" },
      env: { KUBECONFIG: await cluster.kubeconfigFor("shop", "default"), POD_NAMESPACE: "shop" },
    });
    const told = watchEndpoints(istiod.grpcPort, WEB);
    await eventually("the endpoint is served", () => told().length > 0);
    await cluster.client.apply(sliceYaml("web", ["10.1.0.6"]));
    await eventually("a change is there", () => told().at(-1)?.join() === "10.1.0.6:8080");
    expect(await (await istiod.debug("/debug/registryz")).text()).not.toContain("vault.bank");
    await eventually("what may not be read is told", async () => (await ready(istiod)).includes("may not be read: Namespace, Secret"));
  });

  /** The administrator's kubeconfig with another user. */
  function kubeconfigOf(user: Readonly<Record<string, string>>, server = cluster.url): string {
    return dump({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "test",
      clusters: [
        {
          name: "test",
          cluster: { server, "certificate-authority-data": Buffer.from(cluster.ca).toString("base64") },
        },
      ],
      users: [{ name: "user", user }],
      contexts: [{ name: "test", context: { cluster: "test", user: "user" } }],
    });
  }
});
