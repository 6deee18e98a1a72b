import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Caller } from "../authn/authenticator.ts";
import { AuthnError } from "../authn/authn-error.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import {
  type IstioCertificateRequest,
  IstioCertificateRequestSchema,
  IstioCertificateResponseSchema,
} from "../gen/istio/v1/auth/ca_pb.js";
import { type CertificateRequest, CsrError, readCsr } from "../pki/csr.ts";
import { formatSpiffeId } from "../pki/spiffe.ts";
import { CallRefusal } from "../wire/call-refusal.ts";
import type { Peer } from "../wire/discovery-stream.ts";
import type { UnaryMethod } from "../wire/grpc-server.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { type Issued, type Signer, SigningError } from "./authority.ts";
import type { CaMetrics } from "./ca-metrics.ts";

export const CREATE_CERTIFICATE = "/istio.v1.auth.IstioCertificateService/CreateCertificate";

export interface CertificateServiceOptions {
  readonly signer: Signer;
  /** Who calls; throws `AuthnError`. */
  authenticate(peer: Peer): Promise<Caller>;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: CaMetrics;
}

/**
 * `CreateCertificate` of Istio's certificate service. The certificate is for whom the caller has proved to be, and for nobody else: names in the
 * request are not looked at, and impersonation is refused.
 */
export function certificateService(options: CertificateServiceOptions): UnaryMethod {
  const { signer, clock, log, metrics } = options;
  return async (bytes, peer) => {
    metrics.request();
    const { identity, by } = await callerOf(options, peer);
    const request = readRequest(bytes);
    if (request.metadata?.ImpersonatedIdentity !== undefined)
      throw refusal(log, peer, GRPC_STATUS.PERMISSION_DENIED, "certificates for another identity than the caller's are not given out");
    const { keyInfo } = readKey(request, options, peer);
    const issued = await signed(options, { identity, keyInfo, ttlMs: Number(request.validityDuration) * 1_000 });
    metrics.issued();
    const validSeconds = Math.round((issued.notAfter - clock.now()) / 1_000);
    log.debug({ identity: formatSpiffeId(identity), by, peer: peer.address, validSeconds }, "certificate signed");
    return toBinary(
      IstioCertificateResponseSchema,
      create(IstioCertificateResponseSchema, { certChain: [issued.certificate, ...issued.intermediates, issued.roots] }),
    );

    function signed(_: CertificateServiceOptions, what: Parameters<Signer["sign"]>[0]): Promise<Issued> {
      return signer.sign(what).catch((error: unknown) => {
        metrics.signFailed();
        log.error({ error: messageOf(error) }, "a certificate could not be signed");
        throw new CallRefusal(GRPC_STATUS.UNAVAILABLE, error instanceof SigningError ? error.message : "the certificate could not be signed");
      });
    }
  };
}
