import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, assert, beforeAll, describe, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { eventually } from "../support/wait.ts";
import { type Cluster, clusterImpossible, KubeApiError, type KubeObject, startCluster } from "./start-cluster.ts";

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`tests of the cluster are skipped: ${reason}`);

const CRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}
---
apiVersion: example.com/v1
kind: Thing
metadata: {name: one}
spec: {size: 1}
`;

interface Thing extends KubeObject {
  readonly metadata: KubeObject["metadata"] & { readonly managedFields: readonly { readonly manager: string }[] };
  readonly spec: { readonly size: number };
}

const READER = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: shop}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: shop}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: shop}]
`;

describe.skipIf(reason !== undefined)("a cluster without nodes", () => {
  let cluster: Cluster;

  beforeAll(async () => {
    cluster = await startCluster();
  });
  afterAll(() => cluster?.stop());

  it("applies a kind and an object of that kind from one file, and tells who set what", async () => {
    const { objects, warnings } = await cluster.client.apply(CRD);
    assert.deepEqual(
      objects.map(({ kind }) => kind),
      ["CustomResourceDefinition", "Thing"],
    );
    assert.deepEqual(warnings, []);
    const thing = await cluster.client.get<Thing>("Thing", "default/one");
    assert.equal(thing?.spec.size, 1);
    assert.deepEqual(
      thing?.metadata.managedFields.map(({ manager }) => manager),
      ["kubectl"],
    );
  });

  it("refuses what a schema forbids, and says what", async () => {
    const refused = await cluster.client.apply(CRD.replace("size: 1", "size: big")).catch((error: unknown) => error);
    assert.instanceOf(refused, KubeApiError);
    assert.match(refused.message, /spec\.size/);
  });

  it("hands on warnings", async () => {
    const { warnings } = await cluster.client.apply(
      "apiVersion: v1\nkind: Endpoints\nmetadata: {name: old}\nsubsets: [{addresses: [{ip: 192.0.2.7}], ports: [{port: 1}]}]\n",
    );
    assert.match(warnings.join(), /v1 Endpoints is deprecated/);
  });

  it("lets a service account do what its role says and nothing else", async () => {
    await cluster.client.apply(READER);
    const token = await cluster.createServiceAccountToken("shop", "reader");
    const client = cluster.clientFor(token);
    assert.deepEqual(await client.list("Pod", { namespace: "shop" }), []);
    const refused = await client.list("Secret", { namespace: "shop" }).catch((error: unknown) => error);
    assert.equal((refused as KubeApiError).reason, "Forbidden");
  });

  it("makes tokens that the API server knows by audience", async () => {
    const token = await cluster.createServiceAccountToken("default", "default", { audiences: ["istio-ca"] });
    const review = async (audience: string): Promise<unknown> => {
      const { body } = await cluster.client.api.call({
        method: "POST",
        path: "/apis/authentication.k8s.io/v1/tokenreviews",
        body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token, audiences: [audience] } },
      });
      return (body as { readonly status: { readonly authenticated?: boolean } }).status.authenticated ?? false;
    };
    assert.equal(await review("istio-ca"), true);
    assert.equal(await review("vault"), false);
  });

  it("makes the slices of a Service", async () => {
    await cluster.client.apply(
      "apiVersion: v1\nkind: Service\nmetadata: {name: shop}\nspec: {selector: {app: shop}, ports: [{port: 80}]}\n",
    );
    await eventually(
      "an EndpointSlice",
      async () => (await cluster.client.list("EndpointSlice", { labelSelector: "kubernetes.io/service-name=shop" }))[0],
    );
  });

  it("stands still while the API server or etcd is paused, and goes on afterwards", async () => {
    for (const part of ["apiserver", "etcd"] as const) {
      cluster.pause(part);
      const write = cluster.client.apply(`apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${part}}\n`);
      const first = await Promise.race([write.then(() => "written"), stillWaiting(500)]);
      assert.equal(first, "still waiting", part);
      cluster.resume(part);
      await write;
    }
  });

  it("has everything again after the API server was killed", async () => {
    await cluster.killApiServer();
    const refused = await cluster.client.get("ConfigMap", "default/etcd").catch((error: unknown) => error);
    assert.match(String(refused), /ECONNREFUSED|ECONNRESET|socket hang up/);
    await cluster.restartApiServer();
    assert.equal((await cluster.client.get("ConfigMap", "default/etcd"))?.metadata.name, "etcd");
  });

  it("has forgotten where lists and watches were, after etcd was compacted", async () => {
    const { api } = cluster.client;
    const path = "/api/v1/configmaps";
    const { body } = await api.call({ method: "GET", path, query: { limit: 1 } });
    const { metadata } = body as { readonly metadata: { readonly continue: string; readonly resourceVersion: string } };
    await cluster.client.apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: later}\n");
    await cluster.killApiServer();
    await cluster.compactEtcd();
    await cluster.restartApiServer();
    const list = await api.call({ method: "GET", path, query: { limit: 1, continue: metadata.continue } }).catch((error: unknown) => error);
    assert.equal((list as KubeApiError).status, 410);
    const watch = await api.open({ method: "GET", path, query: { watch: true, resourceVersion: metadata.resourceVersion } });
    const event = await new Promise<string>((resolve) => watch.once("data", (text: Buffer) => resolve(text.toString())));
    watch.destroy();
    assert.match(event, /"code":410/);
  });
});

describe.skipIf(reason !== undefined)("the end of a cluster", () => {
  it("comes with the end of who started it, however that ends", async () => {
    const script = `
      const { startCluster } = await import(${JSON.stringify(join(import.meta.dirname, "start-cluster.ts"))});
      const cluster = await startCluster({ controllerManager: false });
      process.stdout.write(cluster.dir + " " + cluster.url + "\\n");
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    const [dir = "", url = ""] = await new Promise<readonly string[]>((resolve) =>
      child.stdout.once("data", (text: Buffer) => resolve(text.toString().trim().split(" "))),
    );
    assert.isTrue(existsSync(dir));
    child.kill("SIGKILL");
    await eventually("its directory is gone", () => !existsSync(dir));
    await eventually("its API server is gone", () =>
      fetch(url).then(
        () => false,
        (error: Error) => /ECONNREFUSED/.test(String(error.cause)),
      ),
    );
  });
});

const stillWaiting = (ms: number): Promise<string> => new Promise((resolve) => systemClock.after(ms, () => resolve("still waiting")));
