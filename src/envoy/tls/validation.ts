import type { MessageInitShape } from "@bufbuild/protobuf";
import { CertificateValidationContext_TrustChainVerification as TrustChain } from "../../gen/envoy/extensions/transport_sockets/tls/v3/common_pb.js";
import type { CommonTlsContext_CombinedCertificateValidationContextSchema as CombinedValidationSchema } from "../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js";
import type { LocalServer } from "../../model/proxy.ts";
import { fileRoots, PATH_SEPARATOR, type SecretName, sdsSecret } from "./sds-secret.ts";

/** How a subject alternative name of the peer must look. */
export type SanMatch = { readonly exact: string } | { readonly prefix: string } | { readonly suffix: string };

/** What the certificate of a peer is checked against. */
export interface PeerValidation {
  /** SDS name of the CA bundle. */
  readonly roots: SecretName;
  /** One of these must be in the certificate; empty = any name will do. */
  readonly subjectAltNames: readonly SanMatch[];
  /** Path of a revocation list on the proxy's machine. */
  readonly crlFile?: string;
  /** Certificates that no root vouches for are taken too; what else is demanded still counts. */
  readonly untrusted?: boolean;
  readonly spkiPins?: readonly string[];
  readonly certificateHashes?: readonly string[];
}

/** Files on the proxy's machine that certificates of peers are checked against. */
export interface TrustFiles {
  readonly roots: string;
  /** Empty where there is no list of revoked certificates. */
  readonly revoked: string;
  /** Who serves what is in files. */
  readonly agent: LocalServer;
}

/**
 * How they are named to the proxy. Without an agent the roots and the list are one secret: both are followed, and a file that is not there costs
 * those who need it, not the whole listener.
 */
export function fileTrust({ roots, revoked, agent }: TrustFiles): Pick<PeerValidation, "roots" | "crlFile"> {
  if (revoked === "") return { roots: fileRoots(roots, agent) };
  return agent === false
    ? { roots: fileRoots(`${roots}${PATH_SEPARATOR}${revoked}`, agent) }
    : { roots: fileRoots(roots, agent), crlFile: revoked };
}

/** Roots come over SDS, the rest stands in the context: both parts together are what Envoy calls a combined context. */
export function combinedValidation(input: PeerValidation): MessageInitShape<typeof CombinedValidationSchema> {
  return {
    defaultValidationContext: {
      matchSubjectAltNames: input.subjectAltNames.map((san) => ({ matchPattern: matchPattern(san) })),
      ...(input.crlFile !== undefined && { crl: { specifier: { case: "filename", value: input.crlFile } } }),
      ...(input.untrusted === true && { trustChainVerification: TrustChain.ACCEPT_UNTRUSTED }),
      verifyCertificateSpki: [...(input.spkiPins ?? [])],
      verifyCertificateHash: [...(input.certificateHashes ?? [])],
    },
    validationContextSdsSecretConfig: sdsSecret(input.roots),
  };
}

function matchPattern(san: SanMatch) {
  if ("exact" in san) return { case: "exact", value: san.exact } as const;
  if ("prefix" in san) return { case: "prefix", value: san.prefix } as const;
  return { case: "suffix", value: san.suffix } as const;
}
