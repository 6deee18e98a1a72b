import type { Caller } from "../authn/authenticator.ts";
import { AuthnError } from "../authn/authn-error.ts";
import type { Clock } from "../base/clock.ts";
import { EdgeError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { type CertificateRequest, CsrError, readCsr } from "../pki/csr.ts";
import { formatSpiffeId, parseSpiffeId, type WorkloadIdentity } from "../pki/spiffe.ts";
import { CallRefusal } from "../wire/call-refusal.ts";
import type { Peer } from "../wire/discovery-stream.ts";
import type { UnaryMethod } from "../wire/grpc-server.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { type Issued, type Signer, SigningError, type SignRequest } from "./authority.ts";
import type { CaMetrics } from "./ca-metrics.ts";
import { answerBytes, type CertificateCall, readCall } from "./certificate-call.ts";
import { verificationPlace } from "./verification-place.ts";

/** The method that Istio's agents call. */
export const CREATE_CERTIFICATE = "/istio.v1.auth.IstioCertificateService/CreateCertificate";

export interface CertificateServiceOptions {
  readonly signer: Signer;
  /** Who calls; throws `AuthnError`. */
  authenticate(peer: Peer): Promise<Caller>;
  /** Why this caller may not ask for a certificate of another of its trust domain; undefined where it may. */
  actingFault(caller: Caller, holder: WorkloadIdentity): string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: CaMetrics;
}

/**
 * `CreateCertificate` of Istio's certificate service. The certificate is for whom the caller has proved to be, and for nobody else: names in the
 * request are not looked at, and impersonation is refused to all but those whom configuration trusts with it. The answer holds the certificate, its intermediates and, last, all roots in one text.
 */
export function certificateService(options: CertificateServiceOptions): UnaryMethod {
  const { clock, log, metrics } = options;
  const placed = verificationPlace(clock);
  return async (bytes, peer) => {
    metrics.request();
    const caller = await callerOf(options, peer);
    const { by, once } = caller;
    const request = readCall(bytes);
    const identity = holderOf(request, { caller, peer }, options);
    const { keyInfo } = await placed((place) => keyOf(request, place, options));
    const ttlMs = (request?.validSeconds ?? 0) * 1_000;
    // Taken before and given back after a failure: whatever happens in between, a token never gets two certificates.
    if (once !== undefined) await orRefused(options, peer, () => once.take().catch((error: unknown) => unlessUnable(options, error)));
    const named = request?.signerName === undefined ? {} : { signerName: request.signerName };
    const issued = await sign(options, { identity, csr: request?.csr ?? "", keyInfo, ttlMs, ...named }).catch(async (error: unknown) => {
      await once?.giveBack();
      throw error;
    });
    metrics.issued();
    const validSeconds = Math.round((issued.notAfter - clock.now()) / 1_000);
    log.debug({ identity: formatSpiffeId(identity), by, peer: peer.address, validSeconds }, "certificate signed");
    return answerBytes([issued.certificate, ...issued.intermediates, issued.roots]);
  };
}

/** Whom the certificate is for: the caller itself, or whom it may speak for. */
function holderOf(
  request: CertificateCall | undefined,
  { caller, peer }: { readonly caller: Caller; readonly peer: Peer },
  { actingFault, log, metrics }: CertificateServiceOptions,
): WorkloadIdentity {
  const asked = request?.actsFor;
  if (asked === undefined) return caller.identity;
  const holder = typeof asked === "string" ? parseSpiffeId(asked) : undefined;
  const reason = holder === undefined ? "what is asked for is no identity" : faultOf(holder);
  if (holder !== undefined && reason === undefined) return holder;
  metrics.unauthenticated();
  const account = formatSpiffeId(caller.identity);
  log.warn(
    { peer: peer.address, account, holder: holder && formatSpiffeId(holder), reason },
    "a certificate of another was refused to a caller",
  );
  throw new CallRefusal(GRPC_STATUS.PERMISSION_DENIED, "certificates are given out for the caller's own identity only");

  function faultOf(one: WorkloadIdentity): string | undefined {
    if (caller.once !== undefined) return "the caller's token is good for one certificate of its own";
    if (one.trustDomain !== caller.identity.trustDomain) return "the identity is of another trust domain";
    return actingFault(caller, one);
  }
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

/** A disk that does not keep the use is our fault, not the caller's, who may come again with the same token. */
function unlessUnable({ log, metrics }: CertificateServiceOptions, error: unknown): never {
  if (!(error instanceof EdgeError)) throw error;
  metrics.signFailed();
  log.error({ reason: messageOf(error.cause), hint: error.hint }, error.message);
  throw new CallRefusal(GRPC_STATUS.UNAVAILABLE, error.message);
}

async function keyOf(
  request: CertificateCall | undefined,
  place: "here" | "elsewhere",
  { metrics }: CertificateServiceOptions,
): Promise<CertificateRequest> {
  try {
    if (request === undefined) throw new CsrError("the message is malformed");
    return await readCsr(request.csr, place);
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
    if (error instanceof CsrError) {
      metrics.malformed();
      throw new CallRefusal(GRPC_STATUS.INVALID_ARGUMENT, error.message);
    }
    metrics.signFailed();
    log.error({ reason: messageOf(error) }, "a certificate could not be signed");
    throw new CallRefusal(GRPC_STATUS.UNAVAILABLE, error instanceof SigningError ? error.message : "the certificate could not be signed");
  }
}
