import type { X509Certificate } from "node:crypto";
import { messageOf } from "../base/errors.ts";
import { type DerReader, explicitTag, inside, readWhole, TAG } from "./der-reader.ts";

const ENUMERATED = 0x0a;
const SUCCESSFUL = 0;

/**
 * Why an OCSP response (DER, RFC 6960) cannot be stapled to a certificate; undefined where it can. Its signature and dates are for clients to
 * look at: what is checked is what Envoy refuses, an answer that is none, or about other certificates.
 */
export function stapleFault(response: Uint8Array, certificate: X509Certificate): string | undefined {
  try {
    const serials = serialsIn(response);
    if (serials.length !== 1) return `it is about ${serials.length} certificates, and must be about one`;
    return serials[0] === normalized(certificate.serialNumber) ? undefined : "it is about another certificate";
  } catch (error) {
    return `it is no OCSP response that says anything (${messageOf(error)})`;
  }
}

/** Serial numbers of the certificates that a response is about, in hexadecimal. */
function serialsIn(response: Uint8Array): readonly string[] {
  const outer = inside(readWhole(response, TAG.SEQUENCE));
  if (outer.take(ENUMERATED).content[0] !== SUCCESSFUL) throw new Error("the responder reports an error");
  const answer = inside(inside(outer.take(explicitTag(0))).take(TAG.SEQUENCE));
  answer.take(TAG.OID);
  const basic = inside(readWhole(answer.take(TAG.OCTET_STRING).content, TAG.SEQUENCE));
  const data = inside(basic.take(TAG.SEQUENCE));
  data.takeIf(explicitTag(0)); // version
  data.any(); // responder
  data.take(TAG.GENERALIZED_TIME);
  const list = inside(data.take(TAG.SEQUENCE));
  const serials: string[] = [];
  while (!list.done) serials.push(serialOf(inside(list.take(TAG.SEQUENCE))));
  return serials;
}

function serialOf(single: DerReader): string {
  const id = inside(single.take(TAG.SEQUENCE));
  id.take(TAG.SEQUENCE); // hash algorithm
  id.take(TAG.OCTET_STRING); // hash of the issuer's name
  id.take(TAG.OCTET_STRING); // hash of the issuer's key
  return normalized(id.take(TAG.INTEGER).content.toString("hex"));
}

const normalized = (hex: string): string => hex.replace(/^0+/, "").toUpperCase();
