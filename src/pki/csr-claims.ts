import { type CertificateName, readNames } from "./certificate.ts";
import { CsrError } from "./csr.ts";
import { DerError, type DerReader, explicitTag, inside, readOid, readWhole, TAG } from "./der-reader.ts";
import { OID } from "./oids.ts";
import { readPem, writePem } from "./pem.ts";

/** What a request asks to be said in its certificate. */
export interface CsrClaims {
  /** The request again, and nothing around it that another reader might take for one. */
  readonly pem: string;
  /** Whether it names a subject; empty parts of one say nothing. */
  readonly hasSubject: boolean;
  readonly names: readonly CertificateName[];
  /** Whether it asks for anything beside names: uses, the rights of a CA, a password. */
  readonly hasMore: boolean;
}

/** Reads what a request (PEM) asks for. Needed only where somebody else signs it as it stands: our own CA looks at the key alone. Throws `CsrError`. */
export function readCsrClaims(pem: string): CsrClaims {
  try {
    const bytes = readPem(pem)[0]?.bytes ?? Buffer.alloc(0);
    const fields = inside(inside(readWhole(bytes, TAG.SEQUENCE)).take(TAG.SEQUENCE));
    fields.take(TAG.INTEGER);
    const hasSubject = saysSomething(inside(fields.take(TAG.SEQUENCE)));
    fields.take(TAG.SEQUENCE);
    const attributes = fields.takeIf(explicitTag(0));
    fields.end();
    const text = writePem("CERTIFICATE REQUEST", bytes);
    return { pem: text, hasSubject, ...(attributes === undefined ? { names: [], hasMore: false } : asked(inside(attributes))) };
  } catch (error) {
    if (error instanceof DerError) throw new CsrError(`the request is malformed: ${error.message}`);
    throw error;
  }
}

/** Agents of Istio name an organization that is empty. */
function saysSomething(subject: DerReader): boolean {
  while (!subject.done) {
    const parts = inside(subject.take(TAG.SET));
    while (!parts.done) {
      const part = inside(parts.take(TAG.SEQUENCE));
      part.take(TAG.OID);
      if (part.any().content.length > 0) return true;
    }
  }
  return false;
}

/** Strict to the last byte: what is skipped here, another reader might take. */
function asked(attributes: DerReader): Pick<CsrClaims, "names" | "hasMore"> {
  const names: CertificateName[] = [];
  let hasMore = false;
  while (!attributes.done) {
    const attribute = inside(attributes.take(TAG.SEQUENCE));
    if (readOid(attribute.take(TAG.OID)) !== OID.extensionRequest) {
      hasMore = true;
      continue;
    }
    const values = inside(attribute.take(TAG.SET));
    const extensions = inside(values.take(TAG.SEQUENCE));
    values.end();
    attribute.end();
    while (!extensions.done) {
      const extension = inside(extensions.take(TAG.SEQUENCE));
      const isNames = readOid(extension.take(TAG.OID)) === OID.subjectAltName;
      extension.takeIf(TAG.BOOLEAN);
      const value = extension.take(TAG.OCTET_STRING).content;
      extension.end();
      if (isNames) names.push(...readNames(value));
      else hasMore = true;
    }
  }
  return { names, hasMore };
}
