import { fromBinary } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { IstioCertificateRequestSchema } from "../gen/istio/v1/auth/ca_pb.js";
import { textField } from "../wire/field-writer.ts";

/** What `CreateCertificate` is asked (`IstioCertificateRequest`). */
export interface CertificateCall {
  readonly csr: string;
  /** How long it is wanted for; 0 leaves it to the CA. */
  readonly validSeconds: number;
  /** `ImpersonatedIdentity` of the metadata, if there is one: a text where the caller keeps to the rules. */
  readonly actsFor: unknown;
}

/** Numbers of the fields. */
const CSR = 1;
const VALIDITY = 3;

/**
 * Reads a request; undefined where it is malformed. Requests are many and nearly all have two plain fields, which are read here at a tenth of what the
 * descriptor's way costs; that way is taken as soon as there is anything else.
 */
export function readCall(bytes: Uint8Array): CertificateCall | undefined {
  try {
    const reader = new BinaryReader(bytes);
    let csr = "";
    let validSeconds = 0;
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (field === CSR && wireType === WireType.LengthDelimited) csr = reader.string();
      else if (field === VALIDITY && wireType === WireType.Varint) validSeconds = Number(reader.int64());
      else return readWhole(bytes);
    }
    return { csr, validSeconds, actsFor: undefined };
  } catch {
    return undefined;
  }
}

function readWhole(bytes: Uint8Array): CertificateCall {
  const { csr, validityDuration, metadata } = fromBinary(IstioCertificateRequestSchema, bytes);
  return { csr, validSeconds: Number(validityDuration), actsFor: metadata?.ImpersonatedIdentity };
}

/** The answer (`IstioCertificateResponse`): the certificate, those above it, the roots. */
export const answerBytes = (certificates: readonly string[]): Buffer => Buffer.concat(certificates.map((pem) => textField(1, pem)));
