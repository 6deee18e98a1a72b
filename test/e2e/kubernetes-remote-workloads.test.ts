import { X509Certificate } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Cluster, clusterImpossible, startCluster } from "../cluster/start-cluster.ts";
import { createCertificateIssuer, tlsSecret } from "../support/certificates.ts";
import { addNamespaces, addPod, secretReaderYaml } from "../support/cluster-objects.ts";
import { askCertificate } from "../support/identity.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { tellOfCluster } from "../support/remote-secret.ts";
import { eventually } from "../support/wait.ts";
import { watchSecret } from "../support/watched-secret.ts";

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

const NAME = "kubernetes://cert";

/** Rights of Istio's role for control planes elsewhere, where they look after a cluster. */
const READER = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: istio-reader}
rules:
- {apiGroups: [""], resources: [endpoints, pods, services, nodes, namespaces, secrets, configmaps], verbs: [get, list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}
- {apiGroups: [authentication.k8s.io], resources: [tokenreviews], verbs: [create]}
- {apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}
- {apiGroups: [""], resources: [configmaps], verbs: [create, get, list, watch, update]}
- {apiGroups: [admissionregistration.k8s.io], resources: [mutatingwebhookconfigurations], verbs: [get, list, watch, update, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: istio-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: istio-reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: istio-system}]
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: reader, namespace: istio-system}}
`;

const EDGE = `
{apiVersion: v1, kind: ServiceAccount, metadata: {name: edge, namespace: shop}}
`;

const INJECTOR = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-sidecar-injector, labels: {istio.io/rev: default, app: sidecar-injector}}
webhooks:
- name: rev.namespace.sidecar-injector.istio.io
  clientConfig: {url: "https://istiod.example.com:15017/inject"}
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
- name: somebody.else.example.com
  clientConfig: {url: "https://else.example.com/"}
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
`;

describe.skipIf(reason !== undefined)("workloads of other clusters", () => {
  let east: Cluster;
  let west: Cluster;
  beforeAll(async () => {
    [east, west] = await Promise.all([startCluster({ controllerManager: false }), startCluster({ controllerManager: false })]);
    for (const cluster of [east, west]) {
      await addNamespaces(cluster, "shop", "istio-system");
      await cluster.client.apply(EDGE);
    }
    await west.client.apply(READER);
    await west.client.apply(secretReaderYaml("edge"));
    const token = await west.createServiceAccountToken("istio-system", "reader");
    await tellOfCluster(east, { name: "west", cluster: west, user: { token } });
  });
  afterAll(async () => {
    await Promise.all([east?.stop(), west?.stop()]);
  });

  const start = (mesh = "", env: Readonly<Record<string, string>> = {}): Promise<Istiod> =>
    startIstiod({
      files: { "mesh.yaml": mesh },
      env: { KUBECONFIG: east.kubeconfig, POD_NAMESPACE: "istio-system", CLUSTER_ID: "east", ...env },
    });
  const tokenOf = (cluster: Cluster, account = "edge"): Promise<string> =>
    cluster.createServiceAccountToken("shop", account, { audiences: ["istio-ca"] });

  it("are known by the cluster they say they are in, and by no other", async () => {
    const istiod = await start();
    const whoIs = async (token: string, cluster?: string): Promise<string | undefined> => {
      const headers = cluster === undefined ? {} : { clusterid: cluster };
      return new X509Certificate((await askCertificate(istiod, { token, headers })).chain[0] ?? "").subjectAltName;
    };
    const [eastern, western] = [await tokenOf(east), await tokenOf(west)];
    const id = "URI:spiffe://cluster.local/ns/shop/sa/edge";
    expect(await whoIs(eastern)).toBe(id);
    expect(await whoIs(eastern, "east")).toBe(id);
    expect(await eventually("the other cluster is known", () => whoIs(western, "west"))).toBe(id);
    for (const [token, cluster] of [
      [western, "east"],
      [western, undefined],
      [eastern, "west"],
    ] as const)
      await expect(whoIs(token, cluster)).rejects.toThrow(/UNAUTHENTICATED.*API server does not accept the token/);
    await expect(whoIs(western, "north")).rejects.toThrow(/UNAUTHENTICATED.*"north", which this control plane does not know/);
  });

  it("get credentials of their own cluster, and else of the control plane's, where they may list Secrets in theirs", async () => {
    const ca = await createCertificateIssuer("servers");
    const [here, there, shared] = [await ca.issue("DNS:here"), await ca.issue("DNS:there"), await ca.issue("DNS:shared")];
    await east.client.apply(tlsSecret("shop/cert", here) + tlsSecret("shop/shared", shared));
    await west.client.apply(tlsSecret("shop/cert", there));
    const istiod = await start();
    const token = await tokenOf(west);
    const cert = await watchSecret(istiod, { account: "edge", token, name: NAME, cluster: "west" });
    await eventually("the one of its cluster is given", () => cert.chain === there.cert);
    const next = await ca.issue("DNS:next");
    await west.client.apply(tlsSecret("shop/cert", next));
    await eventually("another one follows", () => cert.chain === next.cert);
    const other = await watchSecret(istiod, { account: "edge", token, name: "kubernetes://shared", cluster: "west" });
    await eventually("what its cluster does not have", () => other.chain === shared.cert);
    // The same account may not read Secrets in the other cluster.
    const eastern = await watchSecret(istiod, { account: "edge", token: await tokenOf(east), name: NAME, cluster: "east" });
    await eventually("it is refused", () => eastern.answers.length > 0);
    expect(eastern.answers).toEqual([`-${NAME}`]);
    expect(await (await istiod.debug("/debug/configz")).text()).not.toContain("PRIVATE KEY");
  });

  it("are told the roots, and their API server too, where their cluster is served from here", async () => {
    await west.client.apply(INJECTOR);
    const istiod = await start("clusterWrites: true\n", { EXTERNAL_ISTIOD: "true" });
    const rootsIn = async (cluster: Cluster): Promise<string | undefined> =>
      ((await cluster.client.get("ConfigMap", "shop/istio-ca-root-cert"))?.data as Record<string, string> | undefined)?.["root-cert.pem"];
    const roots = await eventually("the own cluster has the roots", () => rootsIn(east));
    await eventually("the other cluster is read", async () => {
      const clusters = (await (await istiod.debug("/debug/clusterz")).json()) as readonly {
        readonly id: string;
        readonly syncStatus: string;
      }[];
      return clusters.some(({ id, syncStatus }) => id === "west" && syncStatus === "synced");
    });
    expect(await rootsIn(west)).toBeUndefined();
    await west.client.patch("Namespace", "istio-system", {
      body: { metadata: { annotations: { "topology.istio.io/controlPlaneClusters": "north, east" } } },
    });
    await eventually("the other one, too", async () => (await rootsIn(west)) === roots);
    const bundles = async (): Promise<readonly (string | undefined)[]> => {
      const found = await west.client.get("MutatingWebhookConfiguration", "istio-sidecar-injector");
      const webhooks = (found?.webhooks ?? []) as readonly { readonly clientConfig: { readonly caBundle?: string } }[];
      return webhooks.map(({ clientConfig }) => clientConfig.caBundle);
    };
    const caBundle = Buffer.from(roots).toString("base64");
    await eventually("its injector", async () => (await bundles())[0] === caBundle);
    expect((await bundles())[1]).toBeUndefined();
    await west.client.patch("ConfigMap", "shop/istio-ca-root-cert", { body: { data: { "root-cert.pem": "mine" } } });
    await eventually("it is put right", async () => (await rootsIn(west)) === roots);
    await west.client.patch("Namespace", "istio-system", {
      body: { metadata: { annotations: { "topology.istio.io/controlPlaneClusters": null } } },
    });
    await eventually("it is left to others", () => istiod.log().includes("left to others"));
  });

  it("that run are known while the API server of their cluster is away", async () => {
    await west.client.apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: istio-reader-accounts}
rules: [{apiGroups: [""], resources: [serviceaccounts], verbs: [get, list, watch]}, {nonResourceURLs: [/openid/v1/jwks, /.well-known/openid-configuration], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: istio-reader-accounts}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: istio-reader-accounts}
subjects: [{kind: ServiceAccount, name: reader, namespace: istio-system}]
`);
    await addPod(west, { name: "cart", address: "10.2.0.1" });
    const boundPod = { name: "cart", uid: String((await west.client.get("Pod", "shop/cart"))?.metadata.uid) };
    const istiod = await start();
    const bound = (): Promise<string> => west.createServiceAccountToken("shop", "default", { audiences: ["istio-ca"], boundPod });
    const ask = (token: string): Promise<unknown> => askCertificate(istiod, { token, headers: { clusterid: "west" } });
    const tokens = [await bound(), await bound()];
    await eventually("the other cluster is known", async () => (await ask(tokens[0] ?? "")) !== undefined);
    await west.killApiServer();
    await eventually("another one is believed", async () => (await ask(tokens[1] ?? "")) !== undefined);
    await west.restartApiServer();
  });
});
