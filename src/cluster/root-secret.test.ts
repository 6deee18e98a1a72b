import { describe, expect, it } from "vitest";
import { Secret } from "../base/secret.ts";
import { caTextsOf, rootSecret } from "./root-secret.ts";

const encoded = (texts: Readonly<Record<string, string>>) => ({
  metadata: { name: "ca" },
  data: Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, Buffer.from(text).toString("base64")])),
});

const table: readonly [what: string, entries: Readonly<Record<string, string>>, want: readonly string[]][] = [
  ["four entries", { "ca-cert.pem": "C", "ca-key.pem": "K", "cert-chain.pem": "M", "root-cert.pem": "R" }, ["C", "K", "M", "R"]],
  ["Istio's own, older", { "ca-cert.pem": "C", "ca-key.pem": "K" }, ["C", "K", "", "C"]],
  ["empty roots", { "ca-cert.pem": "C", "ca-key.pem": "K", "root-cert.pem": "", "cert-chain.pem": "" }, ["C", "K", "", "C"]],
  ["a TLS Secret", { "tls.crt": "C", "tls.key": "K", "ca.crt": "R" }, ["C", "K", "", "R"]],
  ["nothing", {}, ["", "", "", ""]],
];

describe("a CA in a Secret", () => {
  for (const [what, entries, want] of table) {
    it(`is read from ${what}`, () => {
      const texts = caTextsOf(encoded(entries)).reveal();
      expect([texts["ca-cert.pem"], texts["ca-key.pem"], texts["cert-chain.pem"], texts["root-cert.pem"]]).toEqual(want);
    });
  }

  it("that was made here is read as it was written", () => {
    const made = { "ca-cert.pem": "C", "ca-key.pem": "K", "cert-chain.pem": "C", "root-cert.pem": "C" };
    const secret = rootSecret("istio-system", new Secret(made));
    expect(secret).toMatchObject({ metadata: { name: "istio-ca-secret", namespace: "istio-system" }, type: "istio.io/ca-root" });
    expect(caTextsOf(secret).reveal()).toEqual({ ...made, "cert-chain.pem": "" });
  });
});
