import { X509Certificate } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { caTexts, makeCa } from "../../src/ca/ca-fixture.ts";
import { buildCertificate } from "../../src/pki/build-certificate.ts";
import { readCertificates } from "../../src/pki/certificate.ts";
import { generateKeys, privateKeyPem, readPrivateKey } from "../../src/pki/keys.ts";
import { writePem } from "../../src/pki/pem.ts";
import { tempDir } from "../support/cleanup.ts";
import { askCertificate } from "../support/identity.ts";
import { type Istiod, type IstiodOptions, runIstiod, startIstiod } from "../support/istiod.ts";
import { createIssuer } from "../support/tokens.ts";
import { openVmStream } from "../support/vm-agent.ts";
import { eventually } from "../support/wait.ts";

const issuer = createIssuer("https://id.example.com");
const ISSUERS = `tokenIssuers:
- {issuer: "${issuer.name}", jwks: '${issuer.jwks}', identity: {namespace: ns, serviceAccount: sa}}
`;
const tokenOf = (ns: string, sa: string): string => issuer.token({ aud: "istio-ca", ns, sa });
const CART = tokenOf("shop", "cart");

/** The files of `etc/certs` for a control plane, signed by the CA of another. */
async function leafFrom({ home }: Istiod): Promise<Readonly<Record<string, string>>> {
  const text = (name: string): Promise<string> => readFile(join(home, "etc/cacerts", name), "utf8");
  const [ca] = readCertificates(await text("ca-cert.pem"));
  const key = readPrivateKey(await text("ca-key.pem"));
  if (typeof ca === "string" || ca === undefined || typeof key === "string") throw new Error("the CA cannot be read");
  const own = await generateKeys("P-256");
  const der = buildCertificate({
    use: { is: "server", dnsNames: ["istiod.istio-system.svc", "localhost"], addresses: [] },
    keyInfo: own.publicKey.export({ type: "spki", format: "der" }),
    notBefore: ca.notBefore,
    notAfter: systemClock.now() + 3_600_000,
    issuer: { key, keyInfo: ca.keyInfo, name: ca.subject },
  });
  return { "cert-chain.pem": writePem("CERTIFICATE", der), "key.pem": privateKeyPem(own.privateKey), "root-cert.pem": ca.pem };
}

async function put(directory: string, files: Readonly<Record<string, string>>): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text, { mode: 0o600 });
}

const delegating = (port: number): IstiodOptions => ({
  files: { "mesh.yaml": `${ISSUERS}ca: {address: "127.0.0.1:${port}", tlsSettings: {mode: SIMPLE}}\n` },
});

/** One that leaves its signing to `upstream`, to which it shows a token for `account`. */
async function startDelegating(upstream: Istiod, account: string): Promise<Istiod> {
  const home = await tempDir();
  await put(join(home, "etc/certs"), await leafFrom(upstream));
  await put(join(home, "var/run/secrets/tokens"), { "istio-token": tokenOf("istio-system", account) });
  return startIstiod({ ...delegating(upstream.securePort), home });
}

/** The helpers look for the root where a CA is; this one has none, and its clients trust that of the other. */
const trusting = (istiod: Istiod, { home }: Istiod): Istiod => ({ ...istiod, home });

describe("a control plane that leaves its signing to another", () => {
  it("passes requests on for whom its callers are, and the other's roots to all", async () => {
    const upstream = await startIstiod({ files: { "mesh.yaml": ISSUERS }, env: { CA_TRUSTED_CONTROL_PLANES: "istio-system/branch" } });
    const branch = await startDelegating(upstream, "branch");
    const at = trusting(branch, upstream);
    const signed = await askCertificate(at, { token: CART, name: "spiffe://cluster.local/ns/evil/sa/admin" });
    expect(new X509Certificate(signed.chain[0] ?? "").subjectAltName).toBe("URI:spiffe://cluster.local/ns/shop/sa/cart");
    expect(signed.roots).toBe(await readFile(join(upstream.home, "etc/cacerts/root-cert.pem"), "utf8"));
    expect(await readFile(join(branch.home, "var/lib/istio/ca-roots.pem"), "utf8").catch(() => "as given")).toBe("as given");
    expect(await (await openVmStream(at, { certificate: signed })).first).toBe("served");
    expect((await askCertificate(at, { certificate: signed })).chain).toHaveLength(1);
    await expect(readFile(join(branch.home, "etc/cacerts/ca-key.pem"))).rejects.toThrow("ENOENT");

    const other = await makeCa("other", { notBefore: systemClock.now() - 1_000, notAfter: systemClock.now() + 3_600_000 });
    const both = `${await readFile(join(upstream.home, "etc/cacerts/root-cert.pem"), "utf8")}${caTexts(other)["root-cert.pem"]}`;
    await writeFile(join(upstream.home, "etc/cacerts/root-cert.pem"), both);
    await eventually("both roots are told", async () => (await askCertificate(at, { token: CART })).roots === both);
    await eventually("they are kept", async () => (await readFile(join(branch.home, "var/lib/istio/ca-roots.pem"), "utf8")) === both);
  });

  it("says where and why it gets no certificate, and uses up no join token for nothing", async () => {
    const upstream = await startIstiod({ files: { "mesh.yaml": ISSUERS }, env: { CA_TRUSTED_CONTROL_PLANES: "istio-system/branch" } });
    const branch = await startDelegating(upstream, "stranger");
    const at = trusting(branch, upstream);
    const where = `the CA at 127.0.0.1:${upstream.securePort}`;
    await expect(askCertificate(at, { token: CART })).rejects.toMatchObject({
      code: 14,
      details: expect.stringContaining(`${where} refuses us: certificates are given out for the caller's own identity only`),
    });
    await expect(
      askCertificate(upstream, { token: CART, metadata: { ImpersonatedIdentity: "spiffe://cluster.local/ns/bank/sa/x" } }),
    ).rejects.toMatchObject({ code: 7 });
    await put(join(branch.home, "var/run/secrets/tokens"), { "istio-token": tokenOf("istio-system", "branch") });
    const secret = (await readFile(join(branch.home, "var/lib/istio/debug.token"), "utf8")).trim();
    const answer = await fetch(`http://127.0.0.1:${branch.httpPort}/api/workload-token`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({ namespace: "shop", serviceAccount: "cart" }),
    });
    const { token } = (await answer.json()) as { readonly token: string };
    await upstream.stop();
    await expect(askCertificate(at, { token })).rejects.toMatchObject({
      code: 14,
      details: expect.stringContaining(`${where} gave no certificate`),
    });
    expect(await (await fetch(`http://127.0.0.1:${branch.httpPort}/ready?verbose`)).text()).toContain(`${where} gave no certificate`);
    await upstream.start();
    const { chain } = await eventually("the token is still good", () => askCertificate(at, { token }));
    expect(chain).toHaveLength(1);

    const wrong = await makeCa("wrong", { notBefore: systemClock.now() - 1_000, notAfter: systemClock.now() + 3_600_000 });
    await branch.stop();
    await put(join(branch.home, "etc/certs"), { "root-cert.pem": wrong.certificate.pem });
    await branch.start();
    await expect(askCertificate(at, { token: CART })).rejects.toMatchObject({ code: 14, details: expect.stringContaining(where) });
  });

  it("does not start without a certificate of its own", async () => {
    const { status, log } = await runIstiod(delegating(1));
    expect(status).toBe(1);
    expect(log).toContain("there is no certificate for this server in etc/certs");
  });
});
