import { create } from "@bufbuild/protobuf";
import { usableCiphers, usableCurves } from "../../base/tls-parameters.ts";
import { TlsParameters_TlsProtocol } from "../../gen/envoy/extensions/transport_sockets/tls/v3/common_pb.js";
import { type DownstreamTlsContext, DownstreamTlsContextSchema } from "../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js";
import { type SecretName, sdsSecret } from "./sds-secret.ts";
import { combinedValidation, type PeerValidation } from "./validation.ts";

export type TlsVersion = "TLSv1_0" | "TLSv1_1" | "TLSv1_2" | "TLSv1_3";

/** The server side of a TLS connection. */
export interface DownstreamTlsInput {
  /** SDS names of the server certificates; Envoy picks one by key type and SNI. */
  readonly certificates: readonly SecretName[];
  /** How a client certificate is verified; absent = clients are not asked for one, or it is not looked at. */
  readonly validation?: PeerValidation;
  readonly requireClientCertificate: boolean;
  readonly alpn: readonly string[];
  readonly minVersion?: TlsVersion;
  readonly maxVersion?: TlsVersion;
  readonly cipherSuites?: readonly string[];
  readonly ecdhCurves?: readonly string[];
}

/** Ciphers of inbound mutual TLS up to version 1.2, Istio's choice: forward secrecy first, AEAD only. */
export const INBOUND_CIPHERS: readonly string[] = [
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "AES256-GCM-SHA384",
  "AES128-GCM-SHA256",
];

/** Builds the TLS context of a filter chain. TLS parameters are left out where nothing is asked for, so Envoy's defaults hold. */
export function downstreamTlsContext(input: DownstreamTlsInput): DownstreamTlsContext {
  const params = tlsParams(input);
  return create(DownstreamTlsContextSchema, {
    requireClientCertificate: input.requireClientCertificate,
    commonTlsContext: {
      alpnProtocols: [...input.alpn],
      ...(params !== undefined && { tlsParams: params }),
      tlsCertificateSdsSecretConfigs: input.certificates.map(sdsSecret),
      ...(input.validation !== undefined && {
        validationContextType: { case: "combinedValidationContext", value: combinedValidation(input.validation) },
      }),
    },
  });
}

function tlsParams(input: DownstreamTlsInput) {
  const cipherSuites = [...usableCiphers(input.cipherSuites ?? [])];
  const ecdhCurves = [...usableCurves(input.ecdhCurves ?? [])];
  if (input.minVersion === undefined && input.maxVersion === undefined && cipherSuites.length + ecdhCurves.length === 0) return undefined;
  return {
    cipherSuites,
    ecdhCurves,
    ...(input.minVersion !== undefined && { tlsMinimumProtocolVersion: TlsParameters_TlsProtocol[input.minVersion] }),
    ...(input.maxVersion !== undefined && { tlsMaximumProtocolVersion: TlsParameters_TlsProtocol[input.maxVersion] }),
  };
}
