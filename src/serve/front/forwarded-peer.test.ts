import { X509Certificate } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createCertificateIssuer } from "../../../test/support/certificates.ts";
import { holds } from "../../../test/support/holds.ts";
import { forwardedPeer } from "./forwarded-peer.ts";

const cert = (pem: string): string => `Cert="${encodeURIComponent(pem)}"`;
const behind = (headers: Readonly<Record<string, string>>) =>
  forwardedPeer({ address: "unix:", header: (name) => headers[name], certificate: undefined });
const shown = (header: string): string | undefined => {
  const { certificate } = behind({ "x-forwarded-client-cert": header });
  return certificate === undefined ? undefined : new X509Certificate(certificate).subjectAltName;
};

describe("who is behind the Envoy in front", () => {
  it("is who showed the certificate that Envoy speaks of last", async () => {
    const issuer = await createCertificateIssuer("root");
    const [own, other] = [(await issuer.issue("DNS:own.test")).cert, (await issuer.issue("DNS:other.test")).cert];
    expect(shown(`Hash=ab;${cert(own)}`)).toBe("DNS:own.test");
    expect(shown(`Hash=ab;${cert(other)},Hash=cd;${cert(own)};Subject=""`)).toBe("DNS:own.test");
  });

  it("is nobody where Envoy speaks of no certificate", () => {
    for (const header of ["", "Hash=ab", 'Cert="garbage"', 'Cert="%E0%A4%A"', `XCert="x";By=spiffe://a`])
      expect(shown(header)).toBeUndefined();
    expect(behind({}).certificate).toBeUndefined();
  });

  it("calls from where Envoy was called from", () => {
    expect(behind({ "x-forwarded-for": "6.6.6.6, 10.0.0.7" }).address).toBe("10.0.0.7");
    expect(behind({}).address).toBe("unix:");
    expect(behind({ authorization: "Bearer x" }).header("authorization")).toBe("Bearer x");
  });

  it("is nobody, whatever else is written there", () =>
    holds(fc.property(fc.oneof(fc.string(), fc.string().map(cert)), (header) => void expect(shown(header)).toBeUndefined())));
});
