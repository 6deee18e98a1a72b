import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type TransportSocket, TransportSocketSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
import { QuicDownstreamTransportSchema } from "../../gen/envoy/extensions/transport_sockets/quic/v3/quic_transport_pb.js";
import { RawBufferSchema } from "../../gen/envoy/extensions/transport_sockets/raw_buffer/v3/raw_buffer_pb.js";
import {
  type DownstreamTlsContext,
  DownstreamTlsContextSchema,
  UpstreamTlsContextSchema,
} from "../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js";
import { anyOf } from "../../wire/encode.ts";

type SocketInit = MessageInitShape<typeof TransportSocketSchema>;

const TLS = "envoy.transport_sockets.tls";

/** Transport socket of a cluster that speaks TLS. */
export const upstreamTlsSocket = (context: MessageInitShape<typeof UpstreamTlsContextSchema>): SocketInit => ({
  name: TLS,
  configType: { case: "typedConfig", value: anyOf(UpstreamTlsContextSchema, context) },
});

/** Transport socket of a filter chain that speaks TLS. */
export const downstreamTlsSocket = (context: DownstreamTlsContext): TransportSocket =>
  create(TransportSocketSchema, { name: TLS, configType: { case: "typedConfig", value: anyOf(DownstreamTlsContextSchema, context) } });

/** Transport socket of a filter chain that is reached over QUIC, which has TLS inside. */
export const downstreamQuicSocket = (downstreamTlsContext: DownstreamTlsContext): TransportSocket =>
  create(TransportSocketSchema, {
    name: "envoy.transport_sockets.quic",
    configType: {
      case: "typedConfig",
      value: anyOf(QuicDownstreamTransportSchema, create(QuicDownstreamTransportSchema, { downstreamTlsContext })),
    },
  });

/** Plain text, said explicitly: needed inside another socket, or where others stand beside it in a list of matches. Its name means nothing. */
export const rawBufferSocket = (name = "envoy.transport_sockets.raw_buffer"): SocketInit => ({
  name,
  configType: { case: "typedConfig", value: RAW_BUFFER },
});

const RAW_BUFFER = anyOf(RawBufferSchema, {});
