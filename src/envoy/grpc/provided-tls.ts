import { create, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import type { TransportSocketSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
import {
  type CommonTlsContextSchema,
  DownstreamTlsContextSchema,
  UpstreamTlsContextSchema,
} from "../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js";
import { anyOf } from "../../wire/encode.ts";

/** The certificate provider that bootstraps of gRPC workloads declare, and what it holds: both as Istio's agent names them. */
const IDENTITY = { instanceName: "default", certificateName: "default" };
const ROOTS = { instanceName: "default", certificateName: "ROOTCA" };

type TransportSocket = MessageInitShape<typeof TransportSocketSchema>;

/** Mutual TLS of a gRPC client; the server must have one of the names, or any name of the mesh where none is given. */
export const clientTls = (names: readonly string[]): TransportSocket =>
  socket(UpstreamTlsContextSchema, create(UpstreamTlsContextSchema, { commonTlsContext: providedTls(names) }));

/** Mutual TLS of a gRPC server. Names of clients are not looked at here: gRPC servers refuse such matches, policies decide on them. */
export const serverTls = (): TransportSocket =>
  socket(
    DownstreamTlsContextSchema,
    create(DownstreamTlsContextSchema, { commonTlsContext: providedTls([]), requireClientCertificate: true }),
  );

/** gRPC knows this socket by its name. */
const socket = <S extends DescMessage>(schema: S, context: MessageShape<S>): TransportSocket => ({
  name: "envoy.transport_sockets.tls",
  configType: { case: "typedConfig", value: anyOf(schema, context) },
});

/** Certificates come from a provider that the client itself has, never over SDS. Said in the fields of today and in those older clients read. */
function providedTls(names: readonly string[]): MessageInitShape<typeof CommonTlsContextSchema> {
  return {
    tlsCertificateProviderInstance: IDENTITY,
    tlsCertificateCertificateProviderInstance: IDENTITY,
    validationContextType: {
      case: "combinedValidationContext",
      value: {
        defaultValidationContext: {
          caCertificateProviderInstance: ROOTS,
          matchSubjectAltNames: names.map((value) => ({ matchPattern: { case: "exact" as const, value } })),
        },
        validationContextCertificateProviderInstance: ROOTS,
      },
    },
  };
}
