import { mkdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterAll, assert, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import type { CaTexts } from "../../src/ca/ca-material.ts";
import { makeRoot } from "../../src/ca/make-root.ts";
import { secretRootStore } from "../../src/cluster/secret-root-store.ts";
import { DEFAULT_INSTALL } from "../../src/install/install-options.ts";
import { istiodObjects } from "../../src/install/manifests.ts";
import { trustBundleAccess } from "../../src/install/trust-bundle-access.ts";
import { findKubeAccess } from "../../src/kube/kube-access.ts";
import { createKubeClient } from "../../src/kube/kube-client.ts";
import { type Cluster, clusterImpossible, startCluster } from "../cluster/start-cluster.ts";
import { createCertificateIssuer } from "../support/certificates.ts";
import { tempDir } from "../support/cleanup.ts";
import { addNamespaces } from "../support/cluster-objects.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { eventually } from "../support/wait.ts";

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

const CONFIG_MAP = "istio-ca-root-cert";
const BUNDLE = "istio.io:istiod-ca:root-cert";

/** A CA as a user would bring it along. */
const bringCa = async (name: string): Promise<CaTexts> =>
  (await makeRoot({ trustDomain: name, now: systemClock.now(), ttlMs: 86_400_000 })).reveal();

describe.skipIf(reason !== undefined)("the CA of a cluster", () => {
  let cluster: Cluster;
  let count = 0;
  beforeAll(async () => {
    cluster = await startCluster({ controllerManager: false });
    await addNamespaces(cluster, "shop");
  });
  afterAll(() => cluster?.stop());

  /** A control plane in a namespace of its own, so that tests do not find each other's CA. */
  async function place(): Promise<string> {
    count += 1;
    await addNamespaces(cluster, `mesh-${count}`);
    return `mesh-${count}`;
  }

  const start = (namespace: string, mesh = "", options: { readonly home?: string } = {}): Promise<Istiod> =>
    startIstiod({
      files: { "mesh.yaml": `clusterWrites: true\nnamespaces: [shop, ${namespace}]\n${mesh}` },
      env: { KUBECONFIG: cluster.kubeconfig, POD_NAMESPACE: namespace },
      ...options,
    });

  const applySecret = (namespace: string, name: string, stringData: Readonly<Record<string, string>>) =>
    cluster.client.apply(JSON.stringify({ apiVersion: "v1", kind: "Secret", metadata: { name, namespace }, stringData }), { force: true });

  const secretText = async (namespace: string, key: string): Promise<string | undefined> => {
    const secret = await cluster.client.get<{
      metadata: { name: string };
      apiVersion: string;
      kind: string;
      data?: Record<string, string>;
    }>("Secret", `${namespace}/istio-ca-secret`);
    return secret?.data === undefined ? undefined : Buffer.from(secret.data[key] ?? "", "base64").toString();
  };

  const published = async (namespace: string): Promise<string | undefined> =>
    ((await cluster.client.get("ConfigMap", `${namespace}/${CONFIG_MAP}`))?.data as Record<string, string> | undefined)?.["root-cert.pem"];

  const publishedRevoked = async (namespace: string): Promise<string | undefined> =>
    ((await cluster.client.get("ConfigMap", `${namespace}/istio-ca-crl`))?.data as Record<string, string> | undefined)?.["ca-crl.pem"];

  const leads = ({ log }: Istiod): boolean => /leading now.*istio-namespace-controller-election/.test(log());

  it("is made once, however many replicas start at a time, and told to namespaces", async () => {
    const namespace = await place();
    const replicas = await Promise.all([start(namespace), start(namespace), start(namespace)]);
    const root = await eventually("the roots are published", () => published("shop"));
    expect(root).toBe(await secretText(namespace, "root-cert.pem"));
    for (const istiod of replicas) await eventually("its certificate is of that root", () => trusted(istiod, root));
    expect((await cluster.client.get("Secret", `${namespace}/istio-ca-secret`))?.type).toBe("istio.io/ca-root");
    await eventually("one says that it made it", () => replicas.some(({ log }) => log().includes("a new root certificate was made")));
    expect(replicas.filter(({ log }) => log().includes("a new root certificate was made"))).toHaveLength(1);
    await eventually("one leads", () => replicas.some(leads));
    expect(replicas.filter(leads)).toHaveLength(1);
    expect(replicas.map(({ log }) => log()).join("")).not.toContain("PRIVATE KEY");

    await replicas.find(leads)?.stop();
    await cluster.client.delete("ConfigMap", `shop/${CONFIG_MAP}`);
    await eventually("another replica has gone on", async () => (await published("shop")) === root);
  });

  it("stays the same after a restart on an empty disk", async () => {
    const namespace = await place();
    const first = await start(namespace);
    const root = await eventually("there is a Secret", () => secretText(namespace, "root-cert.pem"));
    await first.stop();
    const second = await start(namespace);
    await eventually("its certificate is of that root", () => trusted(second, root));
  });

  it("is the one that a user plugged in, followed as it changes; a wrong one changes nothing", async () => {
    const namespace = await place();
    const [mine, next] = [await bringCa("mine"), await bringCa("next")];
    await applySecret(namespace, "cacerts", { ...mine });
    const istiod = await start(namespace);
    await eventually("it is in force", () => trusted(istiod, mine["root-cert.pem"]));
    expect(await secretText(namespace, "ca-cert.pem")).toBeUndefined();
    await eventually("the roots are published", async () => (await published(namespace)) === mine["root-cert.pem"]);

    await applySecret(namespace, "cacerts", { ...mine, "ca-key.pem": next["ca-key.pem"] });
    await eventually("the fault is told", () => istiod.log().includes("is not the key of the certificate"));
    expect(await trusted(istiod, mine["root-cert.pem"])).toBe(true);

    await applySecret(namespace, "cacerts", { ...next });
    await eventually("the new root signs", () => trusted(istiod, next["root-cert.pem"]));
    await eventually("the new root is published", async () => (await published(namespace)) === next["root-cert.pem"]);
  });

  it("has what it revoked told to namespaces, where it says so, and as it changes", async () => {
    const namespace = await place();
    const mine = await bringCa("mine");
    const issuer = await createCertificateIssuer("above");
    const [first, second] = [await issuer.revoke(await issuer.issue("DNS:a.test")), await issuer.revoke(await issuer.issue("DNS:b.test"))];
    await applySecret(namespace, "cacerts", { ...mine });
    const istiod = await start(namespace);
    await eventually("the roots are published", async () => (await published(namespace)) === mine["root-cert.pem"]);
    expect(await publishedRevoked(namespace)).toBeUndefined();
    for (const list of [first, second]) {
      await applySecret(namespace, "cacerts", { ...mine, "ca-crl.pem": list });
      await eventually("the list is published", async () => (await publishedRevoked(namespace)) === list.trim());
    }
    await eventually("it is in the other namespace too", async () => (await publishedRevoked("shop")) === second.trim());
    await applySecret(namespace, "cacerts", { ...mine, "ca-crl.pem": "nonsense" });
    await eventually("the fault is told", () => istiod.log().includes("ca-crl.pem: it holds no revocation list"));
    expect(await publishedRevoked(namespace)).toBe(second.trim());
    expect(await published(namespace)).toBe(mine["root-cert.pem"]);
  });

  it("may be Istio's own, which has no roots beside its certificate, or one in a TLS Secret", async () => {
    const [istios, tls] = [await place(), await place()];
    const ca = await bringCa("istio");
    await applySecret(istios, "istio-ca-secret", {
      "ca-cert.pem": ca["ca-cert.pem"],
      "ca-key.pem": ca["ca-key.pem"],
      "cert-chain.pem": "",
    });
    await applySecret(tls, "cacerts", { "tls.crt": ca["ca-cert.pem"], "tls.key": ca["ca-key.pem"], "ca.crt": ca["root-cert.pem"] });
    for (const namespace of [istios, tls]) {
      const istiod = await start(namespace);
      await eventually("it is in force", () => trusted(istiod, ca["root-cert.pem"]));
    }
  });

  it("in files counts where the cluster has none", async () => {
    const [namespace, home, ca] = [await place(), await tempDir(), await bringCa("files")];
    await mkdir(join(home, "etc/cacerts"), { recursive: true });
    for (const [name, text] of Object.entries(ca)) await writeFile(join(home, "etc/cacerts", name), String(text), { mode: 0o600 });
    const istiod = await start(namespace, "", { home });
    await eventually("it is in force", () => trusted(istiod, ca["root-cert.pem"]));
    expect(await secretText(namespace, "ca-cert.pem")).toBeUndefined();
  });

  it("is kept for a start while the API server is away, readable for nobody else", async () => {
    const [namespace, kept] = [await place(), join(await tempDir(), "cluster-ca.json")];
    const ending = new AbortController();
    const load = async (): Promise<string> => {
      const access = (await findKubeAccess({ env: { KUBECONFIG: cluster.kubeconfig }, clock: systemClock })) ?? assert.fail("no cluster");
      const client = createKubeClient(access, systemClock);
      const root = { directory: "/nowhere", trustDomain: "cluster.local", rootTtlMs: 86_400_000 };
      const store = secretRootStore({ ...root, client, namespace, kept, clock: systemClock, log: silentLog }, ending.signal);
      return (await store.load()).certificate.pem;
    };
    const made = await load();
    await eventually("it is kept", async () => (await stat(kept)).size > 0);
    expect((await stat(kept)).mode & 0o777).toBe(0o600);
    await cluster.killApiServer();
    expect(await load()).toBe(made);
    ending.abort();
    await cluster.restartApiServer();
  });

  it("is left alone where the cluster is only read", async () => {
    const namespace = await place();
    await startIstiod({ env: { KUBECONFIG: cluster.kubeconfig, POD_NAMESPACE: namespace } });
    expect(await secretText(namespace, "ca-cert.pem")).toBeUndefined();
    expect(await cluster.client.get("Lease", `${namespace}/istio-namespace-controller-election`)).toBeUndefined();
  });

  it("is told in one ClusterTrustBundle where that is set, with the rights of the manifest, and pods are led to it", async () => {
    const namespace = await place();
    const bundle = async (): Promise<string | undefined> =>
      ((await cluster.client.get("ClusterTrustBundle", BUNDLE))?.spec as { readonly trustBundle?: string } | undefined)?.trustBundle;
    const roles = [...istiodObjects({ ...DEFAULT_INSTALL, namespace }), ...trustBundleAccess({ ...DEFAULT_INSTALL, namespace })];
    const rights = roles.filter(({ kind }) => kind === "ServiceAccount" || /Role/.test(kind ?? ""));
    await cluster.client.apply(rights.map((one) => JSON.stringify(one)).join("\n---\n"));
    const mine = await bringCa("mine");
    await applySecret(namespace, "cacerts", { ...mine });
    const webhooks = await freePort();
    await startIstiod({
      files: { "mesh.yaml": "clusterWrites: true\n" },
      env: {
        KUBECONFIG: await cluster.kubeconfigFor(namespace, "istiod"),
        POD_NAMESPACE: namespace,
        ENABLE_CLUSTER_TRUST_BUNDLE_API: "true",
        HTTPS_ADDR: `127.0.0.1:${webhooks}`,
        ISTIO_WEBHOOK_URL: `https://localhost:${webhooks}`,
      },
    });
    await eventually("the roots are there", async () => (await bundle()) === mine["root-cert.pem"]);
    expect(await published(namespace)).toBeUndefined();
    const next = await bringCa("next");
    await cluster.client.patch("ClusterTrustBundle", BUNDLE, { body: { spec: { trustBundle: next["root-cert.pem"] } } });
    await eventually("they are put right", async () => (await bundle()) === mine["root-cert.pem"]);
    await cluster.client.delete("ClusterTrustBundle", BUNDLE);
    await eventually("they are made again", async () => (await bundle()) === mine["root-cert.pem"]);
    const both = `${mine["root-cert.pem"]}${next["root-cert.pem"]}`;
    await applySecret(namespace, "cacerts", { ...mine, "root-cert.pem": both });
    await eventually("they follow the CA", async () => (await bundle())?.match(/BEGIN/g)?.length === 2);
    let pods = 0;
    const mounted = await eventually("a pod is injected", async () => {
      pods += 1;
      const pod = `{apiVersion: v1, kind: Pod, metadata: {name: led-${pods}, namespace: shop, labels: {sidecar.istio.io/inject: "true"}}, spec: {containers: [{name: web, image: web}]}}`;
      await cluster.client.apply(pod);
      const spec = (await cluster.client.get("Pod", `shop/led-${pods}`))?.spec as {
        readonly volumes?: readonly { readonly name: string }[];
      };
      return spec.volumes?.find(({ name }) => name === "istiod-ca-cert");
    });
    expect(mounted).toMatchObject({ projected: { sources: [{ clusterTrustBundle: { name: BUNDLE, path: "root-cert.pem" } }] } });
  });

  it("is told to every namespace that counts, new ones too, and told again where somebody changed it", async () => {
    const namespace = await place();
    await cluster.client.apply("{apiVersion: v1, kind: Namespace, metadata: {name: beside, labels: {mesh: other}}}");
    const mesh = "discoverySelectors: [{matchExpressions: [{key: mesh, operator: NotIn, values: [other]}]}]\n";
    await startIstiod({
      files: { "mesh.yaml": `clusterWrites: true\n${mesh}` },
      env: { KUBECONFIG: cluster.kubeconfig, POD_NAMESPACE: namespace },
    });
    const root = await eventually("there is a Secret", () => secretText(namespace, "root-cert.pem"));
    const isThere = (where: string) => async () => (await published(where)) === root;
    await eventually("it is in a namespace that was there", isThere("default"));
    await cluster.client.apply("{apiVersion: v1, kind: Namespace, metadata: {name: late}}");
    await eventually("it is in a new namespace", isThere("late"));
    await cluster.client.patch("ConfigMap", `late/${CONFIG_MAP}`, { body: { data: { "root-cert.pem": "mine" } } });
    await eventually("it is put right", isThere("late"));
    await cluster.client.delete("ConfigMap", `late/${CONFIG_MAP}`);
    await eventually("it is made again", isThere("late"));
    await cluster.client.patch("Namespace", "beside", { body: { metadata: { labels: { mesh: "ours" } } } });
    await eventually("it is in a namespace that counts now", isThere("beside"));
    expect(await published("kube-public")).toBeUndefined();

    const same = `# the same, as another control plane would write it\n${root}\n\n`;
    await cluster.client.patch("ConfigMap", `late/${CONFIG_MAP}`, { body: { data: { "root-cert.pem": same } } });
    await cluster.client.delete("ConfigMap", `beside/${CONFIG_MAP}`);
    await eventually("later changes were seen", isThere("beside"));
    expect(await published("late")).toBe(same);
  });
});

/** Whether the control plane shows a certificate that these roots vouch for. */
async function trusted({ securePort }: Istiod, roots: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port: securePort, host: "127.0.0.1", ca: roots, servername: "localhost", ALPNProtocols: ["h2"] });
    socket.once("secureConnect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
