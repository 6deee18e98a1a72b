import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { buildCertificate, type CertificateUse } from "./build-certificate.ts";
import { type Certificate, readCertificate, readCertificates, workloadOf } from "./certificate.ts";
import { bundlePem, chainEnd, chainTo } from "./chain.ts";
import { generateKeys, type KeyKind, type KeyPair } from "./keys.ts";

const URI = "spiffe://cluster.local/ns/shop/sa/cart";
const NOW = Date.UTC(2030, 0, 1);
const HOUR = 3_600_000;
let dir = "";
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "cert-"));
});
afterAll(() => rmSync(dir, { recursive: true }));

interface Held {
  readonly certificate: Certificate;
  readonly keys: KeyPair;
}

const infoOf = ({ publicKey }: KeyPair): Buffer => publicKey.export({ type: "spki", format: "der" });

/** A certificate for new keys, signed by `issuer` or by itself. */
async function issue(
  use: CertificateUse,
  issuer?: Held,
  options: { kind?: KeyKind; hours?: number; organization?: string } = {},
): Promise<Held> {
  const keys = await generateKeys(options.kind ?? "P-256");
  const der = buildCertificate({
    use,
    keyInfo: infoOf(keys),
    ...(options.organization !== undefined && { organization: options.organization }),
    notBefore: NOW - HOUR,
    notAfter: NOW + (options.hours ?? 24) * HOUR,
    issuer:
      issuer === undefined
        ? { key: keys.privateKey, keyInfo: infoOf(keys) }
        : { key: issuer.keys.privateKey, keyInfo: issuer.certificate.keyInfo, name: issuer.certificate.subject },
  });
  return { certificate: mustRead(der), keys };
}

function mustRead(der: Buffer): Certificate {
  const read = readCertificate(der);
  if (typeof read === "string") throw new Error(read);
  return read;
}

function openssl(...words: readonly string[]): string {
  return execFileSync("openssl", words, { encoding: "utf8", stdio: "pipe" });
}

const file = (name: string, text: string): string => {
  writeFileSync(join(dir, name), text);
  return join(dir, name);
};

describe("certificates", () => {
  it.for(["P-256", "RSA-2048"] as const)("of root, intermediate and workload (%s) are a chain for openssl", async (kind) => {
    const root = await issue({ is: "ca" }, undefined, { kind, organization: "root" });
    const middle = await issue({ is: "ca", pathLength: 0 }, root, { kind, organization: "middle" });
    const leaf = await issue({ is: "workload", uri: URI }, middle, { kind });
    const at = ["-attime", String(NOW / 1000)];
    const [roots, others, own] = [
      file("root.pem", root.certificate.pem),
      file("middle.pem", middle.certificate.pem),
      file("leaf.pem", leaf.certificate.pem),
    ];
    for (const purpose of ["sslclient", "sslserver"])
      expect(openssl("verify", "-x509_strict", ...at, "-purpose", purpose, "-CAfile", roots, "-untrusted", others, own)).toContain(": OK");
    const text = openssl("x509", "-in", own, "-noout", "-text");
    expect(text).toMatch(/Subject: *\n/);
    expect(text).toMatch(/X509v3 Subject Alternative Name: critical\s+URI:spiffe:\/\/cluster.local\/ns\/shop\/sa\/cart\n/);
    expect(text).toMatch(/X509v3 Key Usage: critical\s+Digital Signature, Key Encipherment\n/);
    expect(text).toMatch(/X509v3 Extended Key Usage: *\s+TLS Web Server Authentication, TLS Web Client Authentication\n/);
    expect(text).toMatch(/X509v3 Basic Constraints: critical\s+CA:FALSE\n/);
    expect(openssl("x509", "-in", others, "-noout", "-text")).toMatch(/CA:TRUE, pathlen:0[\s\S]*|Certificate Sign/);
  });

  it("of a server carry its names and serve for nothing else", async () => {
    const root = await issue({ is: "ca" }, undefined, { organization: "root" });
    const use: CertificateUse = { is: "server", dnsNames: ["istiod.istio-system.svc"], addresses: ["127.0.0.1", "::1"] };
    const server = await issue(use, root, { organization: "istiod" });
    expect(server.certificate.x509.subjectAltName).toBe("DNS:istiod.istio-system.svc, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1");
    const [roots, own] = [file("root.pem", root.certificate.pem), file("server.pem", server.certificate.pem)];
    const verify = ["verify", "-attime", String(NOW / 1000), "-CAfile", roots];
    expect(openssl(...verify, "-purpose", "sslserver", own)).toContain(": OK");
    expect(() => openssl(...verify, "-purpose", "sslclient", own)).toThrow();
    expect(workloadOf(server.certificate)).toBe("the certificate does not carry exactly one SPIFFE id");
  });

  it("have serials of their own", async () => {
    const root = await issue({ is: "ca" }, undefined, { organization: "root" });
    const serials = await Promise.all(
      Array.from({ length: 150 }, async () => (await issue({ is: "workload", uri: URI }, root)).certificate.x509.serialNumber),
    );
    expect(new Set(serials).size).toBe(150);
    // Each begins with as many zeros as chance gives it, which are not written.
    const lengths = serials.map((serial) => serial.length);
    expect(Math.max(...lengths)).toBe(32);
    expect(Math.min(...lengths)).toBeGreaterThan(16);
  });

  it("stand for a workload by exactly one SPIFFE id", async () => {
    const root = await issue({ is: "ca" }, undefined, { organization: "root" });
    const name = (type: "uri" | "dns", value: string) => ({ type, value });
    expect(workloadOf((await issue({ is: "workload", uri: URI }, root)).certificate)).toMatchObject({ namespace: "shop" });
    expect(workloadOf(root.certificate)).toBe("the certificate is a CA's, not a workload's");
    for (const names of [
      [],
      [name("uri", URI), name("uri", URI)],
      [name("uri", URI), name("dns", "a")],
      [name("dns", URI)],
      [name("uri", "spiffe://x")],
    ])
      expect(typeof workloadOf({ names, isCa: false })).toBe("string");
  });
});

describe("chains", () => {
  it("lead to a root by valid signatures only, and end with their first end", async () => {
    const root = await issue({ is: "ca" }, undefined, { organization: "root", hours: 100 });
    const twin = await issue({ is: "ca" }, undefined, { organization: "root", hours: 100 });
    const middle = await issue({ is: "ca" }, root, { organization: "middle", hours: 50 });
    const leaf = await issue({ is: "workload", uri: URI }, middle, { hours: 80 });
    const [roots, others] = [[twin.certificate, root.certificate], [middle.certificate]];
    const chain = chainTo(leaf.certificate, others, roots);
    expect(chain).toMatchObject({ path: [leaf.certificate, middle.certificate], root: root.certificate });
    expect(chain && chainEnd(chain)).toBe(NOW + 50 * HOUR);
    expect(chainTo(leaf.certificate, others, [twin.certificate])).toBeUndefined();
    expect(chainTo(leaf.certificate, [], roots)).toBeUndefined();
    expect(chainTo(root.certificate, [], roots)).toMatchObject({ path: [root.certificate] });
    expect(chainTo((await issue({ is: "workload", uri: URI }, leaf)).certificate, [leaf.certificate, ...others], roots)).toBeUndefined();
    expect(readCertificates(bundlePem(roots))).toHaveLength(2);
  });
});

describe("what is no certificate", () => {
  it("is one with two lists of names, of which readers might take either", async () => {
    const { certificate } = await issue({ is: "workload", uri: URI });
    const raw = Buffer.from(certificate.raw);
    // The authority's key id becomes a second list: both names of extensions take three bytes.
    const at = raw.indexOf(Buffer.from("0603551d23", "hex"));
    expect(at).toBeGreaterThan(0);
    Buffer.from("0603551d11", "hex").copy(raw, at);
    expect(readCertificate(raw)).toContain("two lists of names");
  });

  it("is refused with a sentence", () => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    expect(readCertificates("")).toBe("it holds no certificate in PEM");
    expect(readCertificates(privateKey.export({ type: "pkcs8", format: "pem" }).toString())).toContain("PRIVATE KEY");
    expect(readCertificate(Buffer.from("3000", "hex"))).toContain("it is no certificate");
  });

  it("never throws, whatever byte is changed", async () => {
    const { certificate } = await issue({ is: "workload", uri: URI });
    holds(
      fc.property(fc.nat(certificate.raw.length - 1), fc.nat(255), (at, byte) => {
        const broken = Buffer.from(certificate.raw);
        broken[at] = byte;
        const read = readCertificate(broken);
        if (typeof read !== "string") workloadOf(read);
      }),
      { numRuns: 1_000 },
    );
  });
});
