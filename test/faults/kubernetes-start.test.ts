import { access } from "node:fs/promises";
import { join } from "node:path";
import { status as GRPC } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Cluster, clusterImpossible, startCluster } from "../cluster/start-cluster.ts";
import { watchEndpoints } from "../support/assignments.ts";
import { createCertificateIssuer, placeFiles } from "../support/certificates.ts";
import { tempDir } from "../support/cleanup.ts";
import { addNamespaces, installCrds, serviceYaml, sliceYaml } from "../support/cluster-objects.ts";
import { answersTls, askCertificate, SERVER_NAME } from "../support/identity.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { createIssuer } from "../support/tokens.ts";
import { eventually } from "../support/wait.ts";

/*
 * A control plane that may write to its cluster is started while the API server is away. What it knows it serves; what only the cluster can say, which CA
 * is in force above all, it does not make up.
 */

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

const LONG_MS = 120_000;
const WEB = "outbound|80||web.shop.svc.cluster.local";
const OWN = "outbound|80||own.example.com";
const OWN_ENTRY = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: own, namespace: shop}
spec: {hosts: [own.example.com], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 10.3.0.1}]}
`;

const issuer = createIssuer("https://id.example.com");
const token = issuer.token({ aud: "istio-ca", ns: "shop", sa: "cart" });
const MESH = `clusterWrites: true
tokenIssuers: [{issuer: "${issuer.name}", jwks: '${issuer.jwks}', audiences: [istio-ca], identity: {namespace: ns, serviceAccount: sa}}]
`;

const ready = async ({ httpPort }: Istiod): Promise<string> => (await fetch(`http://127.0.0.1:${httpPort}/ready?verbose`)).text();

describe.skipIf(reason !== undefined)("a start while the API server is away", () => {
  let cluster: Cluster;
  let count = 0;
  beforeAll(async () => {
    cluster = await startCluster({ controllerManager: false });
    await addNamespaces(cluster, "shop");
    await installCrds(cluster);
    await cluster.client.apply(serviceYaml("web") + sliceYaml("web", ["10.1.0.1"]));
  });
  afterAll(() => cluster?.stop());

  /** A namespace of its own for a control plane, so that tests do not find each other's CA. */
  async function place(): Promise<string> {
    count += 1;
    await addNamespaces(cluster, `mesh-${count}`);
    return `mesh-${count}`;
  }

  const start = async (namespace: string, home?: string): Promise<Istiod & { readonly webhookPort: number }> => {
    const webhookPort = await freePort();
    const istiod = await startIstiod({
      files: { "mesh.yaml": MESH, "conf/own.yaml": OWN_ENTRY },
      env: {
        KUBECONFIG: cluster.kubeconfig,
        POD_NAMESPACE: namespace,
        REVISION: namespace,
        HTTPS_ADDR: `127.0.0.1:${webhookPort}`,
        ISTIOD_CUSTOM_HOST: SERVER_NAME,
      },
      ...(home !== undefined && { home }),
    });
    return { ...istiod, webhookPort };
  };

  const secretRoot = async (namespace: string): Promise<string | undefined> => {
    const secret = await cluster.client.get("Secret", `${namespace}/istio-ca-secret`);
    const data = secret?.data as Readonly<Record<string, string>> | undefined;
    return data === undefined ? undefined : Buffer.from(data["root-cert.pem"] ?? "", "base64").toString();
  };

  const signedBy = async (istiod: Istiod, roots: string): Promise<string> => (await askCertificate(istiod, { token, roots })).roots;

  it("serves files and what the cluster said before; the CA is still the cluster's when it is back", async () => {
    const namespace = await place();
    const istiod = await start(namespace);
    const root = await eventually("the CA is made", () => secretRoot(namespace));
    expect(await eventually("it signs", () => signedBy(istiod, root))).toBe(root);
    // A cluster is not waited for without end: on a busy machine it may still be being read.
    const before = watchEndpoints(istiod.grpcPort, WEB);
    await eventually("the cluster is read", () => before().at(-1)?.join() === "10.1.0.1:8080", LONG_MS);
    await istiod.stop();
    await cluster.killApiServer();
    await istiod.start();
    const web = watchEndpoints(istiod.grpcPort, WEB);
    const own = watchEndpoints(istiod.grpcPort, OWN);
    await eventually("both are served", () => web().at(-1)?.join() === "10.1.0.1:8080" && own().at(-1)?.join() === "10.3.0.1:80");
    expect(await ready(istiod)).toMatch(/not known yet: Secret mesh-\d+\/istio-ca-secret could not be read; nothing is signed/);
    expect(await answersTls(istiod.securePort)).toBe(false);
    await cluster.restartApiServer();
    await eventually("the secure port is open", () => answersTls(istiod.securePort), LONG_MS);
    expect(await eventually("it signs again", () => signedBy(istiod, root))).toBe(root);
    expect(await secretRoot(namespace)).toBe(root);
    await eventually("the cluster knows of them", () =>
      cluster.client.get("MutatingWebhookConfiguration", `istio-sidecar-injector-${namespace}-${namespace}`),
    );
    await cluster.client.apply(sliceYaml("web", ["10.1.0.2"]));
    await eventually("the cluster counts again", () => web().at(-1)?.join() === "10.1.0.2:8080", LONG_MS);
    expect(web().every((endpoints) => endpoints.length > 0)).toBe(true);
    expect(istiod.log()).not.toContain("PRIVATE KEY");
  });

  it("makes no root before the cluster said that it has none, and refuses to sign with the reason where another certificate opens its port", async () => {
    const [closed, open, home, other] = [await place(), await place(), await tempDir(), await createCertificateIssuer("elsewhere")];
    const { cert, key } = await other.issue(`DNS:${SERVER_NAME}`);
    await placeFiles(join(home, "etc/certs"), { "cert-chain.pem": cert, "key.pem": key, "root-cert.pem": other.cert });
    await cluster.killApiServer();
    const [first, second] = await Promise.all([start(closed), start(open, home)]);
    const own = watchEndpoints(first.grpcPort, OWN);
    await eventually("files are served", () => own().at(-1)?.join() === "10.3.0.1:80");
    expect(await answersTls(first.securePort)).toBe(false);
    const refusal = await askCertificate(second, { token, roots: other.cert }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: GRPC.UNAVAILABLE });
    expect(String(refusal)).toContain("the CA is not known yet");
    for (const { home: base } of [first, second]) await expect(access(join(base, "etc/cacerts"))).rejects.toThrow();

    await cluster.restartApiServer();
    const root = await eventually("a root is made in the cluster", () => secretRoot(closed), LONG_MS);
    await eventually("it signs", async () => (await signedBy(first, root)) === root, LONG_MS);
    const signed = await eventually("the other signs", () => askCertificate(second, { token, roots: other.cert }), LONG_MS);
    expect(signed.roots).toBe(await secretRoot(open));
    expect((await askCertificate(second, { certificate: signed, roots: other.cert })).roots, "a certificate of the mesh is believed").toBe(
      signed.roots,
    );
    const web = watchEndpoints(first.grpcPort, WEB);
    await eventually("the cluster is joined", () => (web().at(-1)?.length ?? 0) > 0, LONG_MS);
    for (const { home: base } of [first, second]) await expect(access(join(base, "etc/cacerts"))).rejects.toThrow();
  });
});
