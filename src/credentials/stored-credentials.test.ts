import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { createCertificateIssuer, secretDocument, tlsSecret } from "../../test/support/certificates.ts";
import { readDocuments } from "../config/documents/read-documents.ts";
import { type ConfigObject, objectKey } from "../config/object.ts";
import { readObject } from "../config/read-object.ts";
import type { Looked } from "./credential-source.ts";
import { storedCredentials } from "./stored-credentials.ts";

function credentialsOf(text: string) {
  const objects = new Map<string, ConfigObject>();
  for (const raw of readDocuments(text, { source: "test", file: "f.yaml", scope: "f.yaml" })) {
    const { object } = readObject(raw);
    if (object !== undefined) objects.set(objectKey(object), object);
  }
  return storedCredentials(objects);
}

const at = (name: string) => ({ namespace: "shop", name });
const textOf = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString();

function found<T>(looked: Looked<T>): T {
  assert.equal(looked.is, "found", "reason" in looked ? looked.reason : "");
  return (looked as Looked<T> & { readonly value: T }).value;
}

const reasonOf = <T>(looked: Looked<T>): string => ("reason" in looked ? `${looked.is}: ${looked.reason}` : "found");

describe("storedCredentials", () => {
  it("reads certificates from entries of either naming, the generic ones first", async () => {
    const ca = await createCertificateIssuer("ca");
    const [a, b] = [await ca.issue("DNS:a"), await ca.issue("DNS:b")];
    const staple = await ca.staple(a);
    const source = credentialsOf(
      [
        tlsSecret("shop/tls", a, { "tls.ocsp-staple": staple }),
        secretDocument("shop/generic", { cert: b.cert, key: b.key }),
        tlsSecret("shop/both", a, { cert: b.cert, key: b.key }),
        `\n---\n${JSON.stringify({ apiVersion: "v1", kind: "Secret", metadata: { name: "text", namespace: "shop" }, stringData: { "tls.crt": a.cert, "tls.key": a.key } })}`,
      ].join(""),
    );
    const tls = found(source.keyPair(at("tls")));
    assert.equal(textOf(tls.chain), a.cert);
    assert.equal(textOf(tls.key.reveal()), a.key);
    assert.equal(String(tls.key), "[redacted]");
    assert.deepEqual(Buffer.from(tls.ocspStaple ?? []), staple);
    assert.equal(textOf(found(source.keyPair(at("generic"))).chain), b.cert);
    assert.equal(textOf(found(source.keyPair(at("both"))).chain), b.cert);
    assert.equal(textOf(found(source.keyPair(at("text"))).chain), a.cert);
    assert.equal(source.keyPair(at("tls")), source.keyPair(at("tls")), "the same answer as long as nothing changed");
  });

  it("finds the CA in a Secret of its own, else beside the certificate, and in ConfigMaps", async () => {
    const [one, two] = [await createCertificateIssuer("one"), await createCertificateIssuer("two")];
    const pair = await one.issue("DNS:a");
    const source = credentialsOf(
      [
        tlsSecret("shop/beside", pair, { "ca.crt": one.cert }),
        tlsSecret("shop/apart", pair, { "ca.crt": one.cert }),
        secretDocument("shop/apart-cacert", { cacert: two.cert }),
        tlsSecret("shop/none", pair),
        `\n---\n${JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "roots", namespace: "shop" }, data: { "ca.crt": two.cert } })}`,
      ].join(""),
    );
    const roots = (name: string, kind: "Secret" | "ConfigMap" = "Secret") => source.roots({ ...at(name), in: kind });
    assert.equal(textOf(found(roots("beside-cacert")).roots), one.cert);
    assert.equal(textOf(found(roots("apart-cacert")).roots), two.cert);
    assert.equal(textOf(found(roots("roots-cacert", "ConfigMap")).roots), two.cert);
    assert.equal(reasonOf(roots("none-cacert")), "broken: Secret shop/none does not hold the certificates of a CA (ca.crt or cacert)");
    assert.equal(reasonOf(roots("roots-cacert")), "absent: there is no valid Secret shop/roots");
  });

  it("says what is missing or wrong", async () => {
    const ca = await createCertificateIssuer("ca");
    const pair = await ca.issue("DNS:a");
    const source = credentialsOf(
      [
        secretDocument("shop/no-key", { "tls.crt": pair.cert, "tls.key": "" }),
        tlsSecret("shop/bad-ca", pair, { "ca.crt": "hello" }),
        tlsSecret("shop/bad-crl", pair, { "ca.crt": ca.cert, "ca.crl": "hello" }),
      ].join(""),
    );
    assert.equal(
      reasonOf(source.keyPair(at("no-key"))),
      "broken: Secret shop/no-key does not hold a certificate and its key (tls.crt and tls.key, or cert and key)",
    );
    assert.equal(reasonOf(source.keyPair(at("nothing"))), "absent: there is no valid Secret shop/nothing");
    assert.equal(reasonOf(source.keyPair(at("bad-ca"))), "found");
    assert.match(
      reasonOf(source.roots({ ...at("bad-ca-cacert"), in: "Secret" })),
      /broken: Secret shop\/bad-ca, ca\.crt: it holds no certificate/,
    );
    assert.match(
      reasonOf(source.roots({ ...at("bad-crl-cacert"), in: "Secret" })),
      /broken: Secret shop\/bad-crl, ca\.crl: it holds no revocation/,
    );
  });
});
