import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "node:tls";
import { dump } from "js-yaml";
import { afterAll, assert, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { accessObjects } from "../../src/install/access.ts";
import { DEFAULT_INSTALL } from "../../src/install/install-options.ts";
import { signerAccess } from "../../src/install/signer-access.ts";
import { type Cluster, clusterImpossible, startCluster } from "../cluster/start-cluster.ts";
import { startAgentProcess } from "../support/agent.ts";
import { addNamespaces, installCrds } from "../support/cluster-objects.ts";
import { type ClusterSigner, startSigner } from "../support/cluster-signer.ts";
import { type AskOptions, askCertificate, type Signed } from "../support/identity.ts";
import { type Istiod, runIstiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { eventually } from "../support/wait.ts";

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

const CART = "spiffe://cluster.local/ns/shop/sa/cart";
const LONG_MS = 120_000;

describe.skipIf(reason !== undefined)("certificates by signers of a cluster", () => {
  let cluster: Cluster;
  let count = 0;
  beforeAll(async () => {
    cluster = await startCluster({ controllerManager: false });
    await addNamespaces(cluster, "shop");
    await installCrds(cluster, ["Gateway"]);
    await cluster.client.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: cart, namespace: shop}}");
  });
  afterAll(() => cluster?.stop());

  interface Place {
    readonly namespace: string;
    readonly signer: ClusterSigner;
    readonly options: Parameters<typeof startIstiod>[0];
  }

  /** A namespace for a control plane with the rights of the files in `deploy/` and no others, and a signer that nobody else uses. */
  async function place(
    env: Readonly<Record<string, string>>,
    { may = "approve", mesh = "" }: { readonly may?: "approve" | "ask" | "nothing"; readonly mesh?: string } = {},
  ): Promise<Place> {
    count += 1;
    const namespace = `mesh-${count}`;
    await addNamespaces(cluster, namespace);
    const signer = await startSigner(cluster, `example.com/${namespace}`);
    onTestFinished(signer.stop);
    const install = { ...DEFAULT_INSTALL, namespace };
    const signers = [may === "approve" ? signer.name : "example.com/another"];
    const rights = [...accessObjects(install), ...(may === "nothing" ? [] : signerAccess(install, signers))];
    await cluster.client.apply(rights.map((object) => dump(object, { noRefs: true })).join("---\n"));
    const named = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value.replace("SIGNER", signer.name)]));
    const KUBECONFIG = await cluster.kubeconfigFor(namespace, "istiod");
    const files = { "mesh.yaml": `clusterWrites: true\n${mesh}` };
    return { namespace, signer, options: { files, env: { KUBECONFIG, POD_NAMESPACE: namespace, ...named } } };
  }

  const requests = async (signer: string): Promise<number> =>
    (await cluster.client.list("CertificateSigningRequest")).filter(
      ({ spec }) => (spec as { readonly signerName: string }).signerName === signer,
    ).length;

  const published = async (namespace: string): Promise<string> =>
    ((await cluster.client.get("ConfigMap", `${namespace}/istio-ca-root-cert`))?.data as Record<string, string> | undefined)?.[
      "root-cert.pem"
    ] ?? "";

  const ask = async (istiod: Istiod, { namespace, signer }: Place, options: AskOptions = {}): Promise<Signed> =>
    askCertificate(istiod, {
      token: await cluster.createServiceAccountToken("shop", "cart", { audiences: ["istio-ca"] }),
      name: CART,
      roots: signer.root,
      serverName: `istiod.${namespace}.svc`,
      ...options,
    });

  const shown = ({ securePort }: Istiod, { namespace, signer }: Place, ca = signer.root): Promise<X509Certificate> =>
    new Promise((resolve, reject) => {
      const at = { port: securePort, host: "127.0.0.1", ca, servername: `istiod.${namespace}.svc`, ALPNProtocols: ["h2"] };
      const socket = connect(at, () => {
        const certificate = socket.getPeerX509Certificate();
        socket.destroy();
        if (certificate === undefined) reject(new Error("no certificate"));
        else resolve(certificate);
      });
      socket.once("error", reject);
    });

  /** Whose certificate is shown, valid or not. */
  const serialAt = ({ securePort }: Istiod): Promise<string | undefined> =>
    new Promise((resolve, reject) => {
      const socket = connect({ port: securePort, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["h2"] }, () => {
        resolve(socket.getPeerX509Certificate()?.serialNumber);
        socket.destroy();
      });
      socket.once("error", reject);
    });

  it("for the control plane itself: asked for, approved, shown, and its roots told to pods and the API server", async () => {
    const port = await freePort();
    const at = await place({
      PILOT_CERT_PROVIDER: "k8s.io/SIGNER",
      HTTPS_ADDR: `127.0.0.1:${port}`,
      ISTIO_WEBHOOK_URL: `https://localhost:${port}`,
    });
    await at.signer.publish();
    const istiod = await startIstiod(at.options);
    expect((await shown(istiod, at)).subjectAltName).toContain(`DNS:istiod.${at.namespace}.svc`);
    const [request] = at.signer.seen;
    expect(request?.spec.usages).toEqual(["digital signature", "key encipherment", "server auth"]);
    expect(request?.spec.expirationSeconds).toBe(86_400);
    expect(request?.spec.username).toBe(`system:serviceaccount:${at.namespace}:istiod`);
    await eventually("the request is removed", async () => (await requests(at.signer.name)) === 0);

    const roots = await eventually("the roots are published", async () => {
      const text = await published("shop");
      return text.includes(at.signer.root.trim()) && text;
    });
    const { chain, roots: workloadRoots } = await ask(istiod, at);
    expect(new X509Certificate(chain[0] ?? "").verify(new X509Certificate(workloadRoots).publicKey)).toBe(true);
    expect(workloadRoots).not.toContain(at.signer.root.trim());
    expect(roots).toContain(workloadRoots.trim());
    await eventually("the API server reaches the webhooks", async () => {
      const found = await cluster.client.get("ValidatingWebhookConfiguration", `istio-validator-${at.namespace}`);
      return JSON.stringify(found?.webhooks ?? "").includes('"Fail"');
    });
    expect(istiod.log()).not.toContain("PRIVATE KEY");
  });

  it("wait for others' approval where istiod may not give it, and say so once", async () => {
    const at = await place({ PILOT_CERT_PROVIDER: "k8s.io/SIGNER" }, { may: "ask" });
    await at.signer.publish();
    let log = (): string => "";
    const spawned = (text: () => string): void => {
      log = text;
    };
    const starting = startIstiod({ ...at.options, spawned });
    const command = await eventually("it is told", () => /kubectl certificate approve (istiod-\w+-1)/.exec(log()) ?? undefined);
    const name = String(command[1]);
    const approved = { type: "Approved", status: "True", reason: "Test", message: "by hand" };
    await cluster.client.patch("CertificateSigningRequest", name, {
      subresource: "approval",
      body: { status: { conditions: [approved] } },
    });
    const istiod = await starting;
    expect((await shown(istiod, at)).subjectAltName).toContain(`istiod.${at.namespace}.svc`);
    expect(log().split("kubectl certificate approve")).toHaveLength(2);
  });

  it("that are denied, rights that are missing and roots that nobody names end the start with a sentence", async () => {
    const denied = await place({ PILOT_CERT_PROVIDER: "k8s.io/SIGNER" }, { may: "ask" });
    denied.signer.does = "deny";
    const without = await place({ PILOT_CERT_PROVIDER: "k8s.io/SIGNER" }, { may: "nothing" });
    const unknown = await place({ PILOT_CERT_PROVIDER: "k8s.io/SIGNER" });
    const ended = await Promise.all([denied, without, unknown].map(({ options }) => runIstiod(options)));
    expect(ended.map(({ status }) => status)).toEqual([1, 1, 1]);
    const [first, second, third] = ended.map(({ log }) => log);
    expect(first).toMatch(/istiod has no certificate: the request for signer example.com\/mesh-\d+ was denied: Test: because/);
    expect(second).toMatch(/istiod may not create CertificateSigningRequests: give it the rights in deploy\/kubernetes-signer.yaml/);
    expect(third).toMatch(/nobody names its roots; put them into caCertificates of MeshConfig with certSigners/);
    expect(await requests(denied.signer.name)).toBe(0);
  });

  it("are renewed; as long as that fails, the old one stays in force", async () => {
    const at = await place({ PILOT_CERT_PROVIDER: "k8s.io/SIGNER" });
    await at.signer.publish();
    [at.signer.does, at.signer.ttlMs] = ["sign-one", 20_000];
    const istiod = await startIstiod(at.options);
    const health = async (): Promise<string> => (await fetch(`http://127.0.0.1:${istiod.httpPort}/ready?verbose`)).text();
    await eventually("the failure is told", async () => (await health()).includes("it could not be renewed: signer"), LONG_MS);
    expect(at.signer.signed).toHaveLength(1);
    const first = new X509Certificate(at.signer.signed[0] ?? "");
    expect(await serialAt(istiod)).toBe(first.serialNumber);
    [at.signer.does, at.signer.ttlMs] = ["sign", 3_600_000];
    await eventually("another one is shown", async () => (await shown(istiod, at)).serialNumber !== first.serialNumber, LONG_MS);
    await eventually("all is well", async () => !(await health()).includes("could not be renewed"));
  });

  it("for workloads too: exactly for whom the caller is, by the signer it names, without a CA of istiod's own", async () => {
    const env = {
      PILOT_CERT_PROVIDER: "k8s.io/SIGNER",
      EXTERNAL_CA: "ISTIOD_RA_KUBERNETES_API",
      K8S_SIGNER: "SIGNER",
      CERT_SIGNER_DOMAIN: "example.com",
    };
    const other = await startSigner(cluster, "example.com/gold");
    onTestFinished(other.stop);
    const certificate = { pem: other.root, certSigners: [other.name] };
    const at = await place(env, { mesh: dump({ caCertificates: [certificate] }) });
    await cluster.client.apply(dump(signerAccess({ ...DEFAULT_INSTALL, namespace: at.namespace }, [at.signer.name, other.name])[0]));
    await at.signer.publish();
    const istiod = await startIstiod(at.options);
    const { chain, roots, key } = await ask(istiod, at, { ttlSeconds: 3_600 });
    expect(new X509Certificate(chain[0] ?? "").subjectAltName).toBe(`URI:${CART}`);
    expect(chain).toHaveLength(2);
    expect(roots).toContain(at.signer.root.trim());
    const request = at.signer.seen.find(({ spec }) => spec.usages.includes("client auth")) ?? assert.fail("no request for a workload");
    expect(request.spec.expirationSeconds).toBe(3_600);

    const before = at.signer.seen.length;
    await expect(ask(istiod, at, { name: "spiffe://cluster.local/ns/istio-system/sa/istiod" })).rejects.toThrow(
      /INVALID_ARGUMENT.*exactly one name/,
    );
    expect(at.signer.seen.length).toBe(before);

    const named = await ask(istiod, at, { metadata: { CertSigner: "gold" } });
    expect(other.seen).toHaveLength(1);
    expect(named.roots).toContain(other.root.trim());
    // A certificate of either signer is one of the mesh.
    for (const own of [{ chain, key }, named]) expect((await ask(istiod, at, { certificate: own, token: "" })).chain).toHaveLength(2);
    expect(await cluster.client.get("Secret", `${at.namespace}/istio-ca-secret`)).toBeUndefined();

    const asked = other.seen.length;
    const agent = await startAgentProcess({
      name: "cart",
      namespace: "shop",
      serviceAccount: "cart",
      address: "127.0.0.9",
      istiod: `127.0.0.1:${istiod.securePort}`,
      token: await cluster.createServiceAccountToken("shop", "cart", { audiences: ["istio-ca"] }),
      root: at.signer.root,
      env: { ISTIOD_SAN: `istiod.${at.namespace}.svc`, ISTIO_META_CERT_SIGNER: "gold", OUTPUT_CERTS: "etc/certs", DISABLE_ENVOY: "true" },
      wait: false,
    });
    const held = await eventually(
      "an agent has its certificate",
      async () => new X509Certificate(await readFile(join(agent.home, "etc/certs/cert-chain.pem"), "utf8")),
    );
    expect(held.subjectAltName).toBe(`URI:${CART}`);
    expect(other.seen.length).toBe(asked + 1);

    at.signer.does = "fail";
    await expect(ask(istiod, at)).rejects.toThrow(/UNAVAILABLE.*failed: Test: because the test wants it failed/);
  });
});
