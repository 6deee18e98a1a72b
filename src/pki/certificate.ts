import { X509Certificate } from "node:crypto";
import { messageOf } from "../base/errors.ts";
import { DerError, explicitTag, implicitTag, inside, readBoolean, readOid, readWhole, TAG } from "./der-reader.ts";
import { OID } from "./oids.ts";
import { readPem, writePem } from "./pem.ts";
import { parseSpiffeId, type WorkloadIdentity } from "./spiffe.ts";

/** A certificate as read: Node's view of it, and the fields that Node does not give exactly. */
export interface Certificate {
  readonly x509: X509Certificate;
  readonly raw: Buffer;
  readonly pem: string;
  /** Its subject and key as they stand in it. */
  readonly subject: Buffer;
  readonly keyInfo: Buffer;
  /** By which what it signs names its key (RFC 5280 4.2.1.2); undefined where it does not say. */
  readonly keyId: Buffer | undefined;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly isCa: boolean;
  readonly isSelfSigned: boolean;
  /** Subject alternative names, in order. */
  readonly names: readonly CertificateName[];
}

export interface CertificateName {
  readonly type: "dns" | "uri" | "other";
  readonly value: string;
}

/** Reads one certificate from DER; a sentence says what is wrong otherwise. Nothing is verified. */
export function readCertificate(der: Uint8Array): Certificate | string {
  try {
    const x509 = new X509Certificate(der);
    const fields = fieldsOf(x509.raw);
    return {
      x509,
      raw: x509.raw,
      pem: writePem("CERTIFICATE", x509.raw),
      ...fields,
      notBefore: x509.validFromDate.getTime(),
      notAfter: x509.validToDate.getTime(),
      isCa: x509.ca,
      isSelfSigned: x509.subject === x509.issuer && x509.checkIssued(x509) && x509.verify(x509.publicKey),
    };
  } catch (error) {
    return `it is no certificate (${messageOf(error)})`;
  }
}

/** Reads all certificates of a PEM text; other blocks and text without any are a fault. */
export function readCertificates(pem: string): readonly Certificate[] | string {
  const blocks = readPem(pem);
  if (blocks.length === 0) return "it holds no certificate in PEM";
  const certificates: Certificate[] = [];
  for (const { label, bytes } of blocks) {
    const read = label === "CERTIFICATE" ? readCertificate(bytes) : `it holds a block "${label}" beside certificates`;
    if (typeof read === "string") return read;
    certificates.push(read);
  }
  return certificates;
}

/**
 * The workload a certificate stands for. A workload's certificate carries exactly one name, a SPIFFE id of Istio's form; one of a server
 * (the control plane's own among them) carries DNS names, and one of a CA stands for nobody: a sentence says so.
 */
export function workloadOf({ names, isCa }: Pick<Certificate, "names" | "isCa">): WorkloadIdentity | string {
  if (isCa) return "the certificate is a CA's, not a workload's";
  const [name, ...more] = names;
  if (name === undefined || more.length > 0 || name.type !== "uri") return "the certificate does not carry exactly one SPIFFE id";
  return parseSpiffeId(name.value) ?? "the certificate's name is no SPIFFE id of a service account";
}

function fieldsOf(der: Buffer): Pick<Certificate, "subject" | "keyInfo" | "names" | "keyId"> {
  const body = inside(inside(readWhole(der, TAG.SEQUENCE)).take(TAG.SEQUENCE));
  body.takeIf(explicitTag(0));
  body.take(TAG.INTEGER);
  for (let i = 0; i < 3; i++) body.take(TAG.SEQUENCE); // algorithm, issuer, validity
  const subject = body.take(TAG.SEQUENCE).raw;
  const keyInfo = body.take(TAG.SEQUENCE).raw;
  body.takeIf(implicitTag(1));
  body.takeIf(implicitTag(2));
  const extensions = body.takeIf(explicitTag(3));
  return { subject, keyInfo, ...(extensions === undefined ? { names: [], keyId: undefined } : readExtensions(extensions.content)) };
}

function readExtensions(extensions: Buffer): Pick<Certificate, "names" | "keyId"> {
  const list = inside(readWhole(extensions, TAG.SEQUENCE));
  let names: readonly CertificateName[] | undefined;
  let keyId: Buffer | undefined;
  while (!list.done) {
    const extension = inside(list.take(TAG.SEQUENCE));
    const name = readOid(extension.take(TAG.OID));
    const critical = extension.takeIf(TAG.BOOLEAN);
    if (critical !== undefined) readBoolean(critical);
    const value = extension.take(TAG.OCTET_STRING).content;
    extension.end();
    if (name === OID.subjectKeyId) keyId = readWhole(value, TAG.OCTET_STRING).content;
    if (name !== OID.subjectAltName) continue;
    if (names !== undefined) throw new DerError("there are two lists of names");
    names = readNames(value);
  }
  return { names: names ?? [], keyId };
}

/** The names in the value of the extension for them. Throws `DerError`. */
export function readNames(value: Buffer): readonly CertificateName[] {
  const list = inside(readWhole(value, TAG.SEQUENCE));
  const names: CertificateName[] = [];
  while (!list.done) {
    const { tag, content } = list.any();
    const type = tag === implicitTag(6) ? "uri" : tag === implicitTag(2) ? "dns" : "other";
    names.push({ type, value: type === "other" ? content.toString("hex") : content.toString("latin1") });
  }
  return names;
}
