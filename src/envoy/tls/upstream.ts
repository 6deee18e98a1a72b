import type { MessageInitShape } from "@bufbuild/protobuf";
import { usableCiphers, usableCurves } from "../../base/tls-parameters.ts";
import { TlsParameters_TlsProtocol } from "../../gen/envoy/extensions/transport_sockets/tls/v3/common_pb.js";
import type { UpstreamTlsContextSchema } from "../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js";
import { type SecretName, sdsSecret } from "./sds-secret.ts";
import { combinedValidation, type PeerValidation } from "./validation.ts";

/** The client side of a TLS connection. */
export interface UpstreamTlsInput {
  /** SDS name of the certificate to present; absent = none is presented. */
  readonly certificate?: SecretName;
  /** How the server is verified; absent = not at all. */
  readonly validation?: PeerValidation;
  readonly sni?: string;
  readonly alpn: readonly string[];
  readonly cipherSuites?: readonly string[];
  readonly ecdhCurves?: readonly string[];
}

/** Builds the TLS context of a cluster. Versions follow Istio: 1.2 to 1.3 on the client side. */
export function upstreamTlsContext(input: UpstreamTlsInput): MessageInitShape<typeof UpstreamTlsContextSchema> {
  return {
    sni: input.sni ?? "",
    commonTlsContext: {
      alpnProtocols: [...input.alpn],
      tlsParams: {
        tlsMinimumProtocolVersion: TlsParameters_TlsProtocol.TLSv1_2,
        tlsMaximumProtocolVersion: TlsParameters_TlsProtocol.TLSv1_3,
        cipherSuites: [...usableCiphers(input.cipherSuites ?? [])],
        ecdhCurves: [...usableCurves(input.ecdhCurves ?? [])],
      },
      tlsCertificateSdsSecretConfigs: input.certificate === undefined ? [] : [sdsSecret(input.certificate)],
      validationContextType:
        input.validation === undefined
          ? { case: "validationContext", value: {} }
          : { case: "combinedValidationContext", value: combinedValidation(input.validation) },
    },
  };
}
