import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import type { TransportSocketSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
import { ProxyProtocolConfig_Version } from "../../gen/envoy/config/core/v3/proxy_protocol_pb.js";
import { ProxyProtocolUpstreamTransportSchema } from "../../gen/envoy/extensions/transport_sockets/proxy_protocol/v3/upstream_proxy_protocol_pb.js";
import { anyOf } from "../../wire/encode.ts";
import { rawBufferSocket, upstreamTlsContext, upstreamTlsSocket } from "../tls/index.ts";
import type { TransportInput } from "./cluster-input.ts";

type TransportSocket = MessageInitShape<typeof TransportSocketSchema>;
type TransportFields = Pick<MessageInitShape<typeof ClusterSchema>, "transportSocket" | "transportSocketMatches">;

/**
 * The fields of a cluster that say how connections are secured. With `auto` the first match whose metadata an endpoint carries decides,
 * so the socket for plain text, which matches everything, stands last.
 */
export function transportFields({ security, proxyProtocol }: TransportInput): TransportFields {
  const wrap = (socket: TransportSocket): TransportSocket =>
    proxyProtocol === undefined ? socket : withProxyProtocol(socket, proxyProtocol);
  switch (security.kind) {
    case "plain":
      return proxyProtocol === undefined ? {} : { transportSocket: wrap(rawBufferSocket("raw_buffer")) };
    case "tls":
      return { transportSocket: wrap(upstreamTlsSocket(upstreamTlsContext(security.tls))) };
    case "auto":
      return {
        transportSocketMatches: [
          {
            name: "tlsMode-istio",
            match: { tlsMode: "istio" },
            transportSocket: wrap(upstreamTlsSocket(upstreamTlsContext(security.tls))),
          },
          { name: "tlsMode-disabled", match: {}, transportSocket: wrap(rawBufferSocket()) },
        ],
      };
  }
}

/** Says the client's address before anything else is sent. */
function withProxyProtocol(inner: TransportSocket, version: "v1" | "v2"): TransportSocket {
  const typedConfig = anyOf(ProxyProtocolUpstreamTransportSchema, {
    config: { version: version === "v1" ? ProxyProtocolConfig_Version.V1 : ProxyProtocolConfig_Version.V2 },
    transportSocket: inner,
  });
  return { name: "envoy.transport_sockets.upstream_proxy_protocol", configType: { case: "typedConfig", value: typedConfig } };
}
