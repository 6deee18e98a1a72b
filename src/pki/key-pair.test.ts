import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import fc from "fast-check";
import { describe, it } from "vitest";
import { createCertificateIssuer } from "../../test/support/certificates.ts";
import { holds } from "../../test/support/holds.ts";
import { keyPairFault, revocationFault, rootsFault } from "./key-pair.ts";

describe("keyPairFault", () => {
  it("takes a certificate with its key, with the certificates above it and what else stands between", async () => {
    const ca = await createCertificateIssuer("ca");
    const { cert, key } = await ca.issue("DNS:a");
    for (const chain of [cert, cert + ca.cert, `commentary\n${cert}\r\n`, key + cert])
      assert.equal(keyPairFault({ chain, key }), undefined);
    assert.equal(keyPairFault({ chain: cert, key, staple: await ca.staple({ cert, key }) }), undefined);
  });

  it("says what is wrong and with which part, and quotes nothing of it", async () => {
    const ca = await createCertificateIssuer("ca");
    const [one, two] = [await ca.issue("DNS:one"), await ca.issue("DNS:two")];
    const locked = execFileSync("openssl", ["pkey", "-aes256", "-passout", "pass:x"], { input: one.key }).toString();
    const weak = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    const table: readonly [chain: string, key: string, staple: Buffer | undefined, part: string, message: RegExp][] = [
      [one.cert, two.key, undefined, "key", /not the key of the certificate of DNS:one/],
      [ca.cert + one.cert, one.key, undefined, "key", /not the key/],
      ["hello", one.key, undefined, "chain", /no certificate in PEM/],
      [one.cert.slice(0, 200), one.key, undefined, "chain", /no certificate in PEM/],
      [one.cert.replace(/MII/, "MIIA"), one.key, undefined, "chain", /cannot be read/],
      [one.cert, "hello", undefined, "key", /no private key/],
      [one.cert, locked, undefined, "key", /no private key/],
      [one.cert, weak, undefined, "key", /2048 bits/],
      [one.cert, one.key, Buffer.from("hello"), "staple", /no OCSP response/],
      [one.cert, one.key, await ca.staple(two), "staple", /another certificate/],
    ];
    for (const [chain, key, staple, part, message] of table) {
      const fault = keyPairFault({ chain, key, ...(staple !== undefined && { staple }) });
      assert.equal(fault?.part, part);
      assert.match(fault?.message ?? "", message);
      assert.ok(!fault?.message.includes(one.key.split("\n")[1] ?? "-"));
    }
  });

  it("never throws, whatever it is given", () => {
    const block = fc
      .tuple(fc.constantFrom("CERTIFICATE", "PRIVATE KEY", "X509 CRL"), fc.base64String())
      .map(([label, body]) => `-----BEGIN ${label}-----\n${body}\n-----END ${label}-----\n`);
    const text = fc.oneof(fc.string(), block);
    holds(
      fc.property(text, text, fc.uint8Array(), (chain, key, staple) => {
        assert.notEqual(keyPairFault({ chain, key, staple }), undefined);
        rootsFault(chain);
        revocationFault(chain);
      }),
    );
  });
});

describe("roots and revocation lists", () => {
  it("are taken in PEM only", async () => {
    const ca = await createCertificateIssuer("ca");
    assert.equal(rootsFault(ca.cert + ca.cert), undefined);
    assert.match(rootsFault("") ?? "", /no certificate/);
    assert.match(revocationFault(ca.cert) ?? "", /no revocation list/);
    assert.match(revocationFault("") ?? "", /no revocation list/);
  });
});
