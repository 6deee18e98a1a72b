import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startAgentProcess } from "../support/agent.ts";
import { type AgentMesh, CART_HOST, meshBelieving, startAgentMesh } from "../support/agent-mesh.ts";
import { call } from "../support/calls.ts";
import { createCertificateIssuer } from "../support/certificates.ts";
import { tempDir } from "../support/cleanup.ts";
import { httpEcho } from "../support/echo.ts";
import { edgeObjects } from "../support/edge-gateway.ts";
import { askCertificate, rootOf, type Signed } from "../support/identity.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { type TlsAnswer, type TlsCall, tlsCall } from "../support/tls-call.ts";
import { createIssuer } from "../support/tokens.ts";
import { eventually } from "../support/wait.ts";

/** Somebody with a certificate of the mesh who calls the server's Envoy as other Envoys do. */
interface Stranger {
  call(path: string, tls?: Pick<TlsCall, "maxVersion">): Promise<TlsAnswer>;
}

async function stranger({ istiod, issuer, ingress }: AgentMesh, ns: string, sa: string): Promise<Stranger> {
  const { key, chain }: Signed = await askCertificate(istiod, { token: issuer.token({ aud: "istio-ca", ns, sa }) });
  const known = { key, cert: chain.join(""), ALPNProtocols: ["istio-http/1.1", "istio"] };
  return { call: (path, tls = {}) => tlsCall({ ...ingress, ...known, ...tls, name: CART_HOST, path }) };
}

/** Status of a request in plaintext from outside of the mesh; 0 where it is not taken. */
const plainStatus = ({ ingress }: AgentMesh, path = "/"): Promise<number> =>
  call({ ...ingress, host: CART_HOST, path }).then(
    ({ status }) => status,
    () => 0,
  );

const fileOf = ({ istiod }: AgentMesh, name: string): Promise<string> => readFile(join(istiod.home, "etc/istio", name), "utf8");

const peers = (namespace: string, spec: string): string => `
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: ${spec.includes("selector") ? "cart" : "default"}, namespace: ${namespace}}
spec: ${spec}
---`;

describe("who may call whom", () => {
  const SOURCES: readonly [path: string, source: string, allowed: readonly string[]][] = [
    ["/principal", "from: [{source: {principals: [cluster.local/ns/shop/sa/web]}}]", ["web"]],
    ["/under-an-alias", "from: [{source: {principals: [old.test/ns/shop/sa/web]}}]", ["web"]],
    ["/prefix", "from: [{source: {principals: ['cluster.local/ns/bank/*']}}]", ["teller", "web of the bank"]],
    ["/anybody", "from: [{source: {principals: ['*']}}]", ["web", "teller", "web of the bank"]],
    ["/not-principal", "from: [{source: {notPrincipals: [cluster.local/ns/shop/sa/web]}}]", ["teller", "web of the bank", "nobody"]],
    ["/namespace", "from: [{source: {namespaces: [bank]}}]", ["teller", "web of the bank"]],
    ["/not-namespace", "from: [{source: {notNamespaces: [bank]}}]", ["web", "nobody"]],
    ["/account", "from: [{source: {serviceAccounts: [web]}}]", ["web"]],
    ["/account-elsewhere", "from: [{source: {serviceAccounts: [bank/web]}}]", ["web of the bank"]],
    ["/not-account", "from: [{source: {notServiceAccounts: [web, bank/web]}}]", ["teller", "nobody"]],
    ["/when-principal", "when: [{key: source.principal, values: [cluster.local/ns/bank/sa/teller]}]", ["teller"]],
    ["/when-namespace", "when: [{key: source.namespace, notValues: [shop]}]", ["teller", "web of the bank", "nobody"]],
    ["/when-name", `when: [{key: connection.sni, values: [${CART_HOST}]}]`, ["teller", "web of the bank"]],
    ["/when-account", "when: [{key: source.serviceAccount, values: [bank/teller]}]", ["teller"]],
  ];

  it("is decided by the certificate that a caller shows, in every way to say who it is", async () => {
    const rules = SOURCES.map(([path, source]) => `\n  - {to: [{operation: {paths: [${path}]}}], ${source}}`).join("");
    const policy = `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: sources, namespace: shop}
spec:
  selector: {matchLabels: {app: cart}}
  rules:${rules}
`;
    const mesh = await startAgentMesh({ mesh: "trustDomainAliases: [old.test]\n", config: policy });
    const [teller, other] = [await stranger(mesh, "bank", "teller"), await stranger(mesh, "bank", "web")];
    const callers: Readonly<Record<string, (path: string) => Promise<number>>> = {
      web: async (path) => (await call({ ...mesh.target, path })).status,
      teller: async (path) => (await teller.call(path)).status,
      "web of the bank": async (path) => (await other.call(path)).status,
      nobody: (path) => plainStatus(mesh, path),
    };
    await eventually("the policy counts", async () => (await plainStatus(mesh)) === 403);
    for (const [path, , allowed] of SOURCES) {
      const statuses = await Promise.all(Object.entries(callers).map(async ([who, ask]) => [who, await ask(path)] as const));
      const wanted = Object.keys(callers).map((who) => [who, allowed.includes(who) ? 200 : 403]);
      expect([path, statuses]).toEqual([path, wanted]);
    }
  });

  it("is checked by clients, too: a server that is not who the service runs as is sent nothing", async () => {
    const log = join(await tempDir(), "access.log");
    const mesh = await startAgentMesh({ mesh: `accessLogFile: ${log}\n` });
    expect((await call(mesh.target)).status).toBe(200);
    const config = await fileOf(mesh, "conf/cart.yaml");
    await mesh.istiod.write("conf/cart.yaml", config.replace("serviceAccount: cart", "serviceAccount: till"));
    await eventually("the server is not believed", async () => (await call({ ...mesh.target, path: "/secret" })).status === 503);
    await eventually("the log says why", async () => /CERTIFICATE_VERIFY_FAILED\S*SAN/.test(await readFile(log, "utf8")));
    const served = mesh.app.hits.length;
    expect((await call(mesh.target)).status).toBe(503);
    expect(mesh.app.hits).toHaveLength(served);
    await mesh.istiod.write("conf/cart.yaml", config);
    await eventually("it is again", async () => (await call(mesh.target)).status === 200);
  });
});

describe("a gateway for the mesh", () => {
  it("takes certificates of the mesh, shows its own, and turns away all else", async () => {
    const issuer = createIssuer("https://id.example.com");
    const [app, port] = [await httpEcho("app"), await freePort()];
    const objects = edgeObjects({ edge: port, web: app.port, tls: "{mode: ISTIO_MUTUAL}" });
    const istiod = await startIstiod({ files: { "mesh.yaml": meshBelieving(issuer), "conf/edge.yaml": objects } });
    const root = await rootOf(istiod);
    const token = (ns: string, sa: string): string => issuer.token({ aud: "istio-ca", ns, sa });
    await startAgentProcess({
      ...{ name: "edge", args: ["proxy", "router"], serviceAccount: "edge", address: "127.0.0.14", labels: { app: "edge" } },
      ...{ istiod: `127.0.0.1:${istiod.securePort}`, root, token: token("shop", "edge") },
    });
    const { key, chain } = await askCertificate(istiod, { token: token("bank", "teller") });
    const ask = (shown: Pick<TlsCall, "key" | "cert">): Promise<TlsAnswer> => tlsCall({ port, name: "edge.test", ...shown });
    expect(await eventually("it answers", () => ask({ key, cert: chain.join("") }))).toMatchObject({
      status: 200,
      by: "app",
      shown: "URI:spiffe://cluster.local/ns/shop/sa/edge",
    });
    const stranger = await (await createCertificateIssuer("elsewhere")).issue("URI:spiffe://cluster.local/ns/bank/sa/teller");
    for (const shown of [{}, { key: stranger.key, cert: stranger.cert }]) await expect(ask(shown)).rejects.toThrow();
    expect(app.hits).toHaveLength(1);
  });
});

describe("how connections are taken", () => {
  it("is what the nearest policy says: of the port, the workload, the namespace, the mesh", async () => {
    const mesh = await startAgentMesh();
    const { port } = mesh.ingress;
    const seen = async (): Promise<readonly [plain: boolean, inTls: boolean]> => {
      const plain = (await plainStatus(mesh)) === 200;
      expect((await call(mesh.target)).status).toBe(200);
      return [plain, mesh.app.hits.at(-1)?.headers["x-forwarded-client-cert"] !== undefined];
    };
    const workload = (mode: string, more = ""): string =>
      peers("shop", `{selector: {matchLabels: {app: cart}}, mtls: {mode: ${mode}}${more}}`);
    const [whole, namespace] = [peers("istio-system", "{mtls: {mode: STRICT}}"), peers("shop", "{mtls: {mode: PERMISSIVE}}")];
    // Each differs from the one before, so that nothing is seen before it is there.
    const steps: readonly [what: string, policies: string, plain: boolean, inTls: boolean][] = [
      ["nothing", "", true, true],
      ["the mesh", whole, false, true],
      ["the namespace", whole + namespace, true, true],
      ["a namespace that leaves it to the mesh", whole + peers("shop", "{mtls: {mode: UNSET}}"), false, true],
      ["a workload that leaves it to the namespace", whole + namespace + workload("UNSET"), true, true],
      ["the workload", whole + namespace + workload("STRICT"), false, true],
      ["the port", namespace + workload("STRICT", `, portLevelMtls: {${port}: {mode: DISABLE}}`), true, false],
      ["another port", namespace + workload("STRICT", `, portLevelMtls: {${port + 1}: {mode: DISABLE}}`), false, true],
      ["the workload, which takes plaintext alone", whole + workload("DISABLE"), true, false],
    ];
    for (const [what, policies, ...wanted] of steps) {
      await mesh.istiod.write("conf/peers.yaml", policies);
      await eventually(what, async () => {
        expect(await seen()).toEqual(wanted);
        return true;
      });
    }
  });

  it("has the least version of TLS and the ciphers that the mesh says, as it changes", async () => {
    const mesh = await startAgentMesh();
    const web = await stranger(mesh, "shop", "web");
    const old = (): Promise<string> =>
      web.call("/", { maxVersion: "TLSv1.2" }).then(
        ({ protocol, cipher }) => `${protocol} ${cipher}`,
        () => "refused",
      );
    expect(await old()).toMatch(/^TLSv1.2 TLS_ECDHE_ECDSA_/);
    const settings = await fileOf(mesh, "mesh.yaml");
    const set = (fields: string): Promise<void> => mesh.istiod.write("mesh.yaml", `${settings}meshMTLS: ${fields}\n`);
    await set("{cipherSuites: [ECDHE-ECDSA-AES256-GCM-SHA384]}");
    await eventually("the cipher counts", async () => (await old()) === "TLSv1.2 TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384");
    await set("{minProtocolVersion: TLSV1_3}");
    await eventually("the old version is refused", async () => (await old()) === "refused");
    expect((await web.call("/")).protocol).toBe("TLSv1.3");
    expect((await call(mesh.target)).status).toBe(200);
  });
});
