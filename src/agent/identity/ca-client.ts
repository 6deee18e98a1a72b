import { EdgeError, messageOf } from "../../base/errors.ts";
import { eachField } from "../../wire/field-reader.ts";
import { bytesField, numberField, structBytes, textField } from "../../wire/field-writer.ts";
import { GrpcError } from "../../wire/grpc-channel.ts";
import { GRPC_STATUS } from "../../wire/grpc-status.ts";
import type { Dialer } from "../dialer.ts";

const CREATE_CERTIFICATE = "/istio.v1.auth.IstioCertificateService/CreateCertificate";
const ANSWER_MS = 10_000;

export interface SignedChain {
  /** The workload's certificate first, then its intermediates. */
  readonly chain: string;
  readonly roots: string;
}

/** What the CA is asked for. */
export interface CertificateAsk {
  readonly csr: string;
  readonly ttlMs: number;
  /** Which of several signers is to sign; empty leaves that to the CA. */
  readonly signer: string;
}

/** Has a request signed by the CA. Rejects with `EdgeError`. */
export async function signAtCa(dialer: Dialer, { csr, ttlMs, signer }: CertificateAsk): Promise<SignedChain> {
  const { channel, headers, address } = await dialer.dial();
  try {
    const metadata = signer === "" ? [] : [bytesField(4, structBytes({ CertSigner: signer }))];
    const request = Buffer.concat([textField(1, csr), numberField(3, Math.round(ttlMs / 1_000)), ...metadata]);
    return readAnswer(await channel.unary(CREATE_CERTIFICATE, request, { headers, timeoutMs: ANSWER_MS }));
  } catch (error) {
    dialer.avoid(address);
    throw error instanceof EdgeError ? error : refusal(address, error);
  } finally {
    channel.close();
  }
}

/** The answer lists the workload's certificate, then its issuers; the last are the roots. */
function readAnswer(bytes: Uint8Array): SignedChain {
  const list: string[] = [];
  eachField(bytes, (field, reader) => {
    if (field !== 1) return false;
    list.push(reader.string());
    return true;
  });
  const roots = list.pop();
  if (roots === undefined || list.length === 0) throw new EdgeError("control_plane_unreachable", "the CA answered without a certificate");
  return { chain: list.map(withNewline).join(""), roots: withNewline(roots) };
}

const withNewline = (pem: string): string => (pem.endsWith("\n") ? pem : `${pem}\n`);

function refusal(address: string, error: unknown): EdgeError {
  const status = error instanceof GrpcError ? error.status : undefined;
  if (status === GRPC_STATUS.UNAUTHENTICATED || status === GRPC_STATUS.PERMISSION_DENIED)
    return new EdgeError("control_plane_unreachable", `the CA at ${address} refuses our credentials: ${messageOf(error)}`, {
      hint: "the token must be valid now, for audience istio-ca, of an issuer that mesh.yaml names (tokenIssuers)",
    });
  return new EdgeError("control_plane_unreachable", `the CA at ${address} gave no certificate: ${messageOf(error)}`);
}
