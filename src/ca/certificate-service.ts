import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Caller } from "../authn/authenticator.ts";
import { AuthnError } from "../authn/authn-error.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { type IstioCertificateRequest, IstioCertificateRequestSchema, IstioCertificateResponseSchema } from "../gen/istio/v1/auth/ca_pb.js";
import { type CertificateRequest, CsrError, readCsr } from "../pki/csr.ts";
import { formatSpiffeId, parseSpiffeId, type WorkloadIdentity } from "../pki/spiffe.ts";
import { CallRefusal } from "../wire/call-refusal.ts";
import type { Peer } from "../wire/discovery-stream.ts";
import type { UnaryMethod } from "../wire/grpc-server.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { type Issued, type Signer, SigningError, type SignRequest } from "./authority.ts";
import type { CaMetrics } from "./ca-metrics.ts";

export const CREATE_CERTIFICATE = "/istio.v1.auth.IstioCertificateService/CreateCertificate";

export interface CertificateServiceOptions {
  readonly signer: Signer;
  /** Who calls; throws `AuthnError`. */
  authenticate(peer: Peer): Promise<Caller>;
  /** Whether this caller may ask for certificates of others of its trust domain: a control plane that leaves its signing to us. */
  mayActFor(caller: WorkloadIdentity): boolean;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: CaMetrics;
}

/**
 * `CreateCertificate` of Istio's certificate service. The certificate is for whom the caller has proved to be, and for nobody else: names in the
 * request are not looked at, and impersonation is refused to all but trusted control planes. The answer holds the certificate, its intermediates and, last, all roots in one text.
 */
export function certificateService(options: CertificateServiceOptions): UnaryMethod {
  const { clock, log, metrics } = options;
  return async (bytes, peer) => {
    metrics.request();
    const caller = await callerOf(options, peer);
    const { by, once } = caller;
    const request = readRequest(bytes);
    const identity = holderOf(request, caller, options);
    const { keyInfo } = keyOf(request, options);
    const ttlMs = Number(request?.validityDuration ?? 0n) * 1_000;
    // Taken before and given back after a failure: whatever happens in between, a token never gets two certificates.
    await orRefused(options, peer, async () => once?.take());
    const issued = await sign(options, { identity, csr: request?.csr ?? "", keyInfo, ttlMs }).catch(async (error: unknown) => {
      await once?.giveBack();
      throw error;
    });
    metrics.issued();
    const validSeconds = Math.round((issued.notAfter - clock.now()) / 1_000);
    log.debug({ identity: formatSpiffeId(identity), by, peer: peer.address, validSeconds }, "certificate signed");
    const certChain = [issued.certificate, ...issued.intermediates, issued.roots];
    return toBinary(IstioCertificateResponseSchema, create(IstioCertificateResponseSchema, { certChain }));
  };
}

/** Whom the certificate is for: the caller itself, or whom a trusted control plane speaks for. */
function holderOf(
  request: IstioCertificateRequest | undefined,
  { identity, once }: Caller,
  { mayActFor }: CertificateServiceOptions,
): WorkloadIdentity {
  const asked = request?.metadata?.ImpersonatedIdentity;
  if (asked === undefined) return identity;
  const holder = typeof asked === "string" && once === undefined && mayActFor(identity) ? parseSpiffeId(asked) : undefined;
  if (holder?.trustDomain === identity.trustDomain) return holder;
  throw new CallRefusal(GRPC_STATUS.PERMISSION_DENIED, "certificates are given out for the caller's own identity only");
}

const callerOf = (options: CertificateServiceOptions, peer: Peer): Promise<Caller> =>
  orRefused(options, peer, () => options.authenticate(peer));

async function orRefused<T>({ log, metrics }: CertificateServiceOptions, peer: Peer, prove: () => Promise<T>): Promise<T> {
  try {
    return await prove();
  } catch (error) {
    if (!(error instanceof AuthnError)) throw error;
    if (error.reason === "identity") metrics.noIdentity();
    else metrics.unauthenticated();
    log.info({ peer: peer.address, reason: error.message }, "a certificate was refused to a caller");
    throw new CallRefusal(GRPC_STATUS.UNAUTHENTICATED, error.message);
  }
}

function readRequest(bytes: Uint8Array): IstioCertificateRequest | undefined {
  try {
    return fromBinary(IstioCertificateRequestSchema, bytes);
  } catch {
    return undefined;
  }
}

function keyOf(request: IstioCertificateRequest | undefined, { metrics }: CertificateServiceOptions): CertificateRequest {
  try {
    if (request === undefined) throw new CsrError("the message is malformed");
    return readCsr(request.csr);
  } catch (error) {
    if (!(error instanceof CsrError)) throw error;
    metrics.malformed();
    throw new CallRefusal(GRPC_STATUS.INVALID_ARGUMENT, error.message);
  }
}

async function sign({ signer, log, metrics }: CertificateServiceOptions, request: SignRequest): Promise<Issued> {
  try {
    return await signer.sign(request);
  } catch (error) {
    metrics.signFailed();
    log.error({ error: messageOf(error) }, "a certificate could not be signed");
    throw new CallRefusal(GRPC_STATUS.UNAVAILABLE, error instanceof SigningError ? error.message : "the certificate could not be signed");
  }
}
