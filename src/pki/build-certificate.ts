import { createHash, type KeyObject, randomFillSync, sign } from "node:crypto";
import { isIPv4 } from "node:net";
import { parseIp } from "../base/address.ts";
import { inside, readBits, readWhole, TAG } from "./der-reader.ts";
import { bitString, boolean, explicit, implicit, integer, nothing, octetString, oid, sequence, set, time, utf8 } from "./der-writer.ts";
import { algorithmFor, type SignatureAlgorithm } from "./keys.ts";
import { OID } from "./oids.ts";

/** What a certificate is for; it decides key usage, as in Istio's certificates. */
export type CertificateUse =
  | { readonly is: "ca" /** How many further CAs may stand below; undefined is any number. */; readonly pathLength?: number }
  | { readonly is: "workload"; readonly uri: string }
  | { readonly is: "server"; readonly dnsNames: readonly string[]; readonly addresses: readonly string[] };

export interface CertificateInput {
  readonly use: CertificateUse;
  /** The holder's key (SubjectPublicKeyInfo). */
  readonly keyInfo: Uint8Array;
  readonly organization?: string;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly issuer: Issuer;
}

/** Who signs. For a root, `name` is left out: it is its own. */
export interface Issuer {
  readonly key: KeyObject;
  /** The issuer's subject as it stands in its certificate, and its key. */
  readonly name?: Uint8Array;
  readonly keyInfo: Uint8Array;
  /** What its certificate calls its key, where it says so: whoever verifies compares. */
  readonly keyId?: Uint8Array | undefined;
}

/** Builds and signs an X.509 v3 certificate (RFC 5280); gives DER. A random 128-bit serial needs no memory of earlier ones. */
export function buildCertificate(input: CertificateInput): Buffer {
  const { issuer, use } = input;
  const signing = signingParts(issuer);
  const subject = input.organization === undefined ? NOBODY : nameOf(input.organization);
  const extensions = [
    ...usageExtensions(use),
    ...namesExtension(use, input.organization === undefined),
    ...(use.is === "ca" ? [extension(OID.subjectKeyId, octetString(keyId(input.keyInfo)))] : []),
    signing.extension,
  ];
  const body = sequence(
    VERSION_3,
    integer(nextSerial()),
    signing.info,
    issuer.name ?? subject,
    sequence(time(input.notBefore), time(input.notAfter)),
    subject,
    input.keyInfo,
    explicit(3, sequence(...extensions)),
  );
  return sequence(body, signing.info, bitString(sign(signing.digest, body, issuer.key)));
}

/** What all certificates of an issuer have in common. Made once: signing is a hot path. */
interface SigningParts {
  readonly digest: SignatureAlgorithm["digest"];
  /** The algorithm as it stands in the certificate. */
  readonly info: Buffer;
  /** Names the issuer's key. */
  readonly extension: Buffer;
}

const partsOfIssuers = new WeakMap<Uint8Array, SigningParts>();

function signingParts({ key, keyInfo, keyId: named }: Issuer): SigningParts {
  const made = partsOfIssuers.get(keyInfo);
  if (made !== undefined) return made;
  const algorithm = algorithmFor(key);
  const parts = {
    digest: algorithm.digest,
    info: algorithmInfo(algorithm),
    extension: extension(OID.authorityKeyId, sequence(implicit(0, named ?? keyId(keyInfo)))),
  };
  partsOfIssuers.set(keyInfo, parts);
  return parts;
}

const SERIAL_BYTES = 16;
/** Random bytes for the next serials: many cost as much as few. */
const randomness = Buffer.alloc(64 * SERIAL_BYTES);
let spent = randomness.length;

function nextSerial(): Buffer {
  if (spent === randomness.length) {
    randomFillSync(randomness);
    spent = 0;
  }
  spent += SERIAL_BYTES;
  return randomness.subarray(spent - SERIAL_BYTES, spent);
}

/** The identifier of a key (RFC 5280 4.2.1.2, first method). */
export function keyId(keyInfo: Uint8Array): Buffer {
  const fields = inside(readWhole(keyInfo, TAG.SEQUENCE));
  fields.take(TAG.SEQUENCE);
  return createHash("sha1")
    .update(readBits(fields.take(TAG.BIT_STRING)))
    .digest();
}

/** ECDSA and Ed25519 have no parameters; RSA has a null, which some readers insist on. */
const algorithmInfo = ({ oid: name, keyType }: SignatureAlgorithm): Buffer =>
  keyType === "rsa" ? sequence(oid(name), nothing()) : sequence(oid(name));

const VERSION_3 = explicit(0, integer(Uint8Array.of(2)));
const NOBODY = sequence();
const nameOf = (organization: string): Buffer => sequence(set(sequence(oid(OID.organization), utf8(organization))));

const CRITICAL = boolean(true);

function extension(name: string, value: Uint8Array, critical = false): Buffer {
  return critical ? sequence(oid(name), CRITICAL, octetString(value)) : sequence(oid(name), octetString(value));
}

/** Bits of KeyUsage, from the first: digitalSignature, keyEncipherment, keyCertSign, cRLSign. */
const LEAF_USAGE = extension(OID.keyUsage, bitString(Uint8Array.of(0b1010_0000), 5), true);
const CA_USAGE = extension(OID.keyUsage, bitString(Uint8Array.of(0b0000_0110), 1), true);
const NO_CA = extension(OID.basicConstraints, sequence(), true);
/** What every leaf says of its use. Made once: signing is a hot path. */
const WORKLOAD_EXTENSIONS = [
  Buffer.concat([LEAF_USAGE, extension(OID.extendedKeyUsage, sequence(oid(OID.serverAuth), oid(OID.clientAuth))), NO_CA]),
];
const SERVER_EXTENSIONS = [Buffer.concat([LEAF_USAGE, extension(OID.extendedKeyUsage, sequence(oid(OID.serverAuth))), NO_CA])];

function usageExtensions(use: CertificateUse): readonly Buffer[] {
  if (use.is !== "ca") return use.is === "workload" ? WORKLOAD_EXTENSIONS : SERVER_EXTENSIONS;
  const limit = use.pathLength === undefined ? [] : [integer(Uint8Array.of(use.pathLength))];
  return [CA_USAGE, extension(OID.basicConstraints, sequence(boolean(true), ...limit), true)];
}

/** Critical where there is no subject, since then only these names say whose it is (RFC 5280 4.2.1.6). */
function namesExtension(use: CertificateUse, critical: boolean): readonly Buffer[] {
  switch (use.is) {
    case "ca":
      return [];
    case "workload":
      return [extension(OID.subjectAltName, sequence(implicit(6, Buffer.from(use.uri, "latin1"))), critical)];
    case "server": {
      const names = use.dnsNames.map((name) => implicit(2, Buffer.from(name, "latin1")));
      const addresses = use.addresses.map((address) => implicit(7, addressBytes(address)));
      return [extension(OID.subjectAltName, sequence(...names, ...addresses), critical)];
    }
  }
}

function addressBytes(text: string): Buffer {
  const value = parseIp(text)?.value ?? 0n;
  const size = isIPv4(text) ? 4 : 16;
  return Buffer.from(value.toString(16).padStart(size * 2, "0"), "hex");
}
