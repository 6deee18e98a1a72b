import { isIP } from "node:net";
import { create } from "@bufbuild/protobuf";
import { type GrpcService_GoogleGrpc, GrpcService_GoogleGrpcSchema } from "../../gen/envoy/config/core/v3/grpc_service_pb.js";
import { typedStruct } from "../../wire/encode.ts";

export interface TokenClientInput {
  /** What statistics call it. */
  readonly name: string;
  readonly rootCertFile: string;
  /** Name in the server's certificate. */
  readonly serverName: string;
  readonly tokenFile: string;
}

const TOKEN_PLUGIN = "envoy.grpc_credentials.file_based_metadata";
const TOKEN_CONFIG = "type.googleapis.com/envoy.config.grpc_credential.v3.FileBasedMetadataConfig";

/** A gRPC client over TLS that sends, with each call, the token that stands in a file at that time. */
export function tokenClient(server: { readonly host: string; readonly port: number }, input: TokenClientInput): GrpcService_GoogleGrpc {
  const { host, port } = server;
  const token = typedStruct(TOKEN_CONFIG, {
    secret_data: { filename: input.tokenFile },
    header_key: "authorization",
    header_prefix: "Bearer ",
  });
  return create(GrpcService_GoogleGrpcSchema, {
    targetUri: isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`,
    statPrefix: input.name,
    credentialsFactoryName: TOKEN_PLUGIN,
    channelCredentials: {
      credentialSpecifier: {
        case: "sslCredentials",
        value: { rootCerts: { specifier: { case: "filename", value: input.rootCertFile } } },
      },
    },
    callCredentials: [
      { credentialSpecifier: { case: "fromPlugin", value: { name: TOKEN_PLUGIN, configType: { case: "typedConfig", value: token } } } },
    ],
    channelArgs: {
      args: {
        "grpc.ssl_target_name_override": { valueSpecifier: { case: "stringValue", value: input.serverName } },
        "grpc.keepalive_time_ms": number(30_000),
        "grpc.keepalive_timeout_ms": number(10_000),
        "grpc.max_receive_message_length": number(-1),
        // The control plane is called directly, whatever proxy the environment names for others.
        "grpc.enable_http_proxy": number(0),
      },
    },
  });
}

const number = (value: number) => ({ valueSpecifier: { case: "intValue", value: BigInt(value) } }) as const;
