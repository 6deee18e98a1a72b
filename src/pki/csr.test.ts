import { execFileSync } from "node:child_process";
import { createPublicKey, generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { buildCsr, CsrError, LONGEST_CSR, readCsr } from "./csr.ts";
import { generateKeys, keyFault } from "./keys.ts";
import { readPem, writePem } from "./pem.ts";

const ID = "spiffe://cluster.local/ns/shop/sa/cart";
let dir = "";
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "csr-"));
});
afterAll(() => rmSync(dir, { recursive: true }));

/** A request made by openssl with a key of its own choice. */
function opensslCsr(...keyArguments: readonly string[]): string {
  const [key, csr] = [join(dir, "key.pem"), join(dir, "req.pem")];
  execFileSync("openssl", ["genpkey", ...keyArguments, "-out", key], { stdio: "ignore" });
  execFileSync("openssl", [
    "req",
    "-new",
    "-key",
    key,
    "-subj",
    "/O=evil/CN=admin",
    "-addext",
    "subjectAltName=DNS:istiod.istio-system.svc",
    "-out",
    csr,
  ]);
  return readFileSync(csr, "utf8");
}

describe("certificate requests", () => {
  it.for([
    ["P-256", ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]],
    ["P-384", ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"]],
    ["RSA of 2048 bits", ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]],
    ["Ed25519", ["-algorithm", "ED25519"]],
  ] as const)("of openssl with %s are taken", async ([, words]) => {
    const { keyInfo } = await readCsr(opensslCsr(...words));
    expect(createPublicKey({ key: keyInfo, format: "der", type: "spki" }).export({ type: "spki", format: "der" })).toEqual(keyInfo);
  });

  it("of ours are read by openssl and by us", async () => {
    for (const kind of ["P-256", "RSA-2048"] as const) {
      const csr = buildCsr(await generateKeys(kind), ID);
      writeFileSync(join(dir, "own.pem"), csr);
      const text = execFileSync("openssl", ["req", "-in", join(dir, "own.pem"), "-noout", "-text", "-verify"], {
        encoding: "utf8",
        stdio: "pipe",
      });
      expect(text).toContain(`URI:${ID}`);
      expect((await readCsr(csr, "here")).keyInfo).toEqual((await readCsr(csr)).keyInfo);
    }
  });

  it.for([
    ["RSA of 1024 bits", ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"], "at least 2048 bits"],
    ["another curve", ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:secp256k1"], "must be of P-256"],
    [
      "a curve of its own making",
      ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-pkeyopt", "ec_param_enc:explicit"],
      "must name their curve",
    ],
  ] as const)("with %s are refused", async ([, words, reason]) => {
    await expect(readCsr(opensslCsr(...words))).rejects.toThrow(new RegExp(reason));
  });

  it.for([
    ["more than 8192 bits", { n: randomBytes(1_025).fill(0xff, 0, 1), e: Buffer.from([1, 0, 1]) }, "at most 8192 bits"],
    ["an exponent of one", { n: randomBytes(256).fill(0xff, 0, 1), e: Buffer.from([1]) }, "exponent is out of range"],
    [
      "an exponent that takes for ever",
      { n: randomBytes(256).fill(0xff, 0, 1), e: randomBytes(200).fill(0xff, 0, 1) },
      "exponent is out of range",
    ],
  ] as const)("with an RSA key of %s are refused before it is used", ([, { n, e }, reason]) => {
    const jwk = { kty: "RSA", n: n.toString("base64url"), e: e.toString("base64url") };
    expect(keyFault(createPublicKey({ key: jwk, format: "jwk" }))).toContain(reason);
  });

  it("that are not signed with their own key are refused", async () => {
    const [mine, other] = [await generateKeys("P-256"), await generateKeys("P-256")];
    await expect(readCsr(buildCsr({ privateKey: mine.privateKey, publicKey: other.publicKey }, ID))).rejects.toThrow(
      "not signed with its own key",
    );
    const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
    await expect(readCsr(buildCsr({ privateKey: mine.privateKey, publicKey: rsa.publicKey }, ID))).rejects.toThrow("not of the kind");
  });

  it("that are none are refused", async () => {
    const csr = buildCsr(await generateKeys("P-256"), ID);
    const [block] = readPem(csr);
    const bytes = block?.bytes ?? Buffer.alloc(0);
    for (const text of [
      "",
      "nonsense",
      csr + csr,
      writePem("CERTIFICATE", bytes),
      writePem("CERTIFICATE REQUEST", Buffer.concat([bytes, bytes])),
    ])
      await expect(readCsr(text)).rejects.toThrow(CsrError);
    await expect(readCsr(" ".repeat(LONGEST_CSR + 1))).rejects.toThrow("longer than");
  });

  it("are taken or refused as such, whatever byte is changed", async () => {
    const [block] = readPem(buildCsr(await generateKeys("P-256"), ID));
    const good = block?.bytes ?? Buffer.alloc(0);
    await holds(
      fc.asyncProperty(fc.nat(good.length - 1), fc.nat(255), fc.nat(good.length), async (at, byte, cut) => {
        const broken = Buffer.from(good);
        broken[at] = byte;
        for (const bytes of [broken, good.subarray(0, cut)]) {
          if (bytes.equals(good)) continue;
          for (const place of ["here", "elsewhere"] as const)
            await expect(readCsr(writePem("CERTIFICATE REQUEST", bytes), place)).rejects.toThrow(CsrError);
        }
      }),
      { numRuns: 1_000 },
    );
  });
});
