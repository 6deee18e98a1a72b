import { X509Certificate } from "node:crypto";

/** What OpenSSL keeps beside a certificate that it is to trust by itself (`X509_CERT_AUX`): a list of uses, client and server. */
const TRUSTED_USES = Buffer.from("3016301406082b0601050507030206082b06010505070301", "hex");
const BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Certificates (PEM) for the verification of others, each in a text of its own. OpenSSL ends a chain only at a certificate that signed itself. Operators may trust one that another has
 * signed, without trusting that other, as Envoy and Go take it: such ones are marked. One whose issuer is there too is none. What cannot be read is passed on as it is.
 */
export function trustAnchors(texts: readonly string[]): readonly string[] {
  try {
    const all = texts.flatMap((text) => text.match(BLOCK) ?? []).map((pem) => new X509Certificate(pem));
    const hasIssuer = (one: X509Certificate): boolean => all.some((other) => one.checkIssued(other) && one.verify(other.publicKey));
    return all.map((one) => (hasIssuer(one) ? one.toString() : trusted(one)));
  } catch {
    return texts;
  }
}

const trusted = ({ raw }: X509Certificate): string =>
  `-----BEGIN TRUSTED CERTIFICATE-----\n${Buffer.concat([raw, TRUSTED_USES]).toString("base64")}\n-----END TRUSTED CERTIFICATE-----\n`;
