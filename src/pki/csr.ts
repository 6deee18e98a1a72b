import { createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { type DerElement, DerError, explicitTag, inside, readBits, readWhole, TAG } from "./der-reader.ts";
import { bitString, boolean, explicit, implicit, integer, octetString, oid, sequence, set } from "./der-writer.ts";
import { algorithmFor, type KeyPair, keyFault, SIGNATURE_ALGORITHMS, type SignatureAlgorithm } from "./keys.ts";
import { OID } from "./oids.ts";
import { readPem, writePem } from "./pem.ts";

/** A request for a certificate is not acceptable; the message says why and may be shown to its sender. */
export class CsrError extends Error {
  override readonly name = "CsrError";
}

/** What of a request counts: the key, proved to be the sender's. Names it asks for are not read: who it is for is known from the caller. */
export interface CertificateRequest {
  /** The key as it was sent (SubjectPublicKeyInfo). */
  readonly keyInfo: Buffer;
}

/** Longest text looked at: a request with a key of 8192 bits and some names takes a third of it. */
export const LONGEST_CSR = 16 * 1024;

const CSR_LABEL = /^(NEW )?CERTIFICATE REQUEST$/;

/**
 * Reads a PKCS#10 request in PEM and checks its self-signature: on another thread, or at once where it is asked for and the key is of the usual kind, which is
 * quickly done. Rejects with `CsrError`; size and key are judged before anything that costs time.
 */
export async function readCsr(pem: string, place: "here" | "elsewhere" = "elsewhere"): Promise<CertificateRequest> {
  if (pem.length > LONGEST_CSR) throw new CsrError(`the request is longer than ${LONGEST_CSR} characters`);
  const [block, ...more] = readPem(pem);
  if (block === undefined || !CSR_LABEL.test(block.label) || more.length > 0)
    throw new CsrError("the request is not one PEM block of a CSR");
  const { signed, keyInfo, algorithm, signature } = parts(block.bytes);
  const usual = isPlainP256(keyInfo);
  const key = usual ? keyText(keyInfo) : acceptedKey(keyInfo);
  const keyType = typeof key === "string" ? "ec" : key.asymmetricKeyType;
  if (keyType !== algorithm.keyType) throw new CsrError("the signature is not of the kind the key makes");
  const isSigned = usual && place === "here" ? isSignedHere : isSignedBy;
  if (await isSigned(key, { signed, algorithm, signature })) return { keyInfo };
  importKey(keyInfo);
  throw new CsrError("the request is not signed with its own key");
}

/** Writes a request that asks for one URI name, as a workload's agent does. */
export const buildCsr = (keys: KeyPair, uri: string): string => requestFor(keys, [implicit(6, Buffer.from(uri))]);

/** Writes a request for a server that is called by these DNS names. */
export const buildServerCsr = (keys: KeyPair, dnsNames: readonly string[]): string =>
  requestFor(
    keys,
    dnsNames.map((name) => implicit(2, Buffer.from(name, "latin1"))),
  );

/** A request without a subject: only the names say whose it is. */
function requestFor({ privateKey, publicKey }: KeyPair, names: readonly Buffer[]): string {
  const algorithm = algorithmFor(privateKey);
  const extension = sequence(oid(OID.subjectAltName), boolean(true), octetString(sequence(...names)));
  const info = sequence(
    integer(Uint8Array.of(0)),
    sequence(),
    publicKey.export({ type: "spki", format: "der" }),
    explicit(0, sequence(oid(OID.extensionRequest), set(sequence(extension)))),
  );
  const signature = sign(algorithm.digest, info, privateKey);
  return writePem("CERTIFICATE REQUEST", sequence(info, sequence(oid(algorithm.oid)), bitString(signature)));
}

interface Parts {
  readonly signed: Buffer;
  readonly keyInfo: Buffer;
  readonly algorithm: SignatureAlgorithm;
  readonly signature: Buffer;
}

function parts(bytes: Buffer): Parts {
  try {
    const request = inside(readWhole(bytes, TAG.SEQUENCE));
    const info = request.take(TAG.SEQUENCE);
    const algorithm = algorithmOf(request.take(TAG.SEQUENCE));
    const signature = readBits(request.take(TAG.BIT_STRING));
    request.end();
    const fields = inside(info);
    fields.take(TAG.INTEGER);
    fields.take(TAG.SEQUENCE);
    const keyInfo = fields.take(TAG.SEQUENCE).raw;
    fields.takeIf(explicitTag(0));
    fields.end();
    return { signed: info.raw, keyInfo, algorithm, signature };
  } catch (error) {
    if (error instanceof DerError) throw new CsrError(`the request is malformed: ${error.message}`);
    throw error;
  }
}

/** Known by their bytes: to spell out what a request names costs more than to compare. */
const ALGORITHMS = new Map(SIGNATURE_ALGORITHMS.map((algorithm) => [oid(algorithm.oid).toString("latin1"), algorithm]));

function algorithmOf(element: DerElement): SignatureAlgorithm {
  const found = ALGORITHMS.get(inside(element).take(TAG.OID).raw.toString("latin1"));
  if (found === undefined) throw new CsrError("the signature algorithm is not accepted");
  return found;
}

/** How the SubjectPublicKeyInfo of a P-256 key begins (RFC 5480), up to the byte that says that the point is not compressed; the point makes it 91 bytes. */
const P256_START = Buffer.from("3059301306072a8648ce3d020106082a8648ce3d03010703420004", "hex");
const P256_BYTES = 91;

/** The usual kind of key, known by how it begins: to ask the key object for its details takes as long as to sign. */
const isPlainP256 = (keyInfo: Buffer): boolean =>
  keyInfo.length === P256_BYTES && P256_START.equals(keyInfo.subarray(0, P256_START.length));

/** As text, because Node takes a text in half the time (measured: 15 µs, and 38 µs as DER, where it first throws and catches twice). */
const keyText = (keyInfo: Buffer): string => writePem("PUBLIC KEY", keyInfo);

function importKey(keyInfo: Buffer): KeyObject {
  try {
    return createPublicKey(keyText(keyInfo));
  } catch {
    throw new CsrError("the public key cannot be read");
  }
}

/** A key of any kind, judged before it is used. */
function acceptedKey(keyInfo: Buffer): KeyObject {
  const key = importKey(keyInfo);
  const fault = keyFault(key) ?? curveFault(key, keyInfo);
  if (fault !== undefined) throw new CsrError(fault);
  return key;
}

/** OpenSSL recognizes a known curve that is spelled out instead of named; others do not, and would refuse the certificate. */
function curveFault({ asymmetricKeyType }: KeyObject, keyInfo: Buffer): string | undefined {
  if (asymmetricKeyType !== "ec") return undefined;
  const algorithm = inside(inside(readWhole(keyInfo, TAG.SEQUENCE)).take(TAG.SEQUENCE));
  algorithm.any();
  return algorithm.takeIf(TAG.OID) === undefined ? "elliptic-curve keys must name their curve" : undefined;
}

/** OpenSSL refuses some malformed signatures by throwing; for us they are wrong, like any other. */
function isSignedHere(key: KeyObject | string, { signed, algorithm, signature }: Omit<Parts, "keyInfo">): boolean {
  try {
    return verify(algorithm.digest, signed, key, signature);
  } catch {
    return false;
  }
}

function isSignedBy(key: KeyObject | string, { signed, algorithm, signature }: Omit<Parts, "keyInfo">): Promise<boolean> {
  return new Promise((resolve) => {
    try {
      verify(algorithm.digest, signed, key, signature, (error, good) => resolve(error === null && good));
    } catch {
      resolve(false);
    }
  });
}
