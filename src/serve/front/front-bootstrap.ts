import type { HostPort } from "../../settings/host-port.ts";

export interface FrontInput {
  /** Where clients call. */
  readonly addresses: readonly HostPort[];
  /** Where istiod serves, and where it serves its certificates. */
  readonly socket: string;
  readonly secretsSocket: string;
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
  readonly maxConnections: number;
}

/** Names of the secrets. */
export const SERVER_SECRET = "istiod";
/** Name under which the Envoy in front asks for the roots that it verifies clients with. */
export const CLIENTS_SECRET = "clients";

const HANDSHAKE = "5s";
const TYPE = "type.googleapis.com/envoy";

/**
 * The configuration of the Envoy that stands in front of istiod: TLS on all addresses, everything passed on over a Unix socket. Clients' certificates
 * are verified here; one that has only run out passes, since a token may be shown beside it and istiod looks at the time itself. It has no
 * admin port: there is nothing to change, and nobody else on the machine is to end it.
 */
export function frontBootstrap(input: FrontInput): string {
  return JSON.stringify({
    node: { id: "istiod-front", cluster: "istiod" },
    static_resources: {
      listeners: input.addresses.map((address) => listener(address, input)),
      clusters: [cluster("istiod", input.socket), cluster("secrets", input.secretsSocket)],
    },
    overload_manager: {
      resource_monitors: [
        {
          name: "envoy.resource_monitors.global_downstream_max_connections",
          typed_config: {
            "@type": `${TYPE}.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig`,
            max_active_downstream_connections: input.maxConnections,
          },
        },
      ],
    },
  });
}

function listener({ host, port }: HostPort, input: FrontInput): object {
  return {
    name: `front_${port}`,
    address: { socket_address: { address: host || "::", port_value: port, ...(host === "" && { ipv4_compat: true }) } },
    per_connection_buffer_limit_bytes: 1024 * 1024,
    filter_chains: [
      {
        transport_socket_connect_timeout: HANDSHAKE,
        transport_socket: {
          name: "tls",
          typed_config: {
            "@type": `${TYPE}.extensions.transport_sockets.tls.v3.DownstreamTlsContext`,
            disable_stateless_session_resumption: true,
            disable_stateful_session_resumption: true,
            require_client_certificate: false, // Who has none shows a token. Envoy is to demand one where nothing is said, some day, and warns of that.
            common_tls_context: {
              alpn_protocols: ["h2"],
              tls_params: { tls_minimum_protocol_version: "TLSv1_2" },
              tls_certificate_sds_secret_configs: [secret(SERVER_SECRET)],
              validation_context_sds_secret_config: secret(CLIENTS_SECRET),
            },
          },
        },
        filters: [{ name: "http", typed_config: connectionManager(input) }],
      },
    ],
  };
}

function connectionManager({ keepaliveMs, keepaliveTimeoutMs }: FrontInput): object {
  return {
    "@type": `${TYPE}.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: "front",
    codec_type: "HTTP2",
    use_remote_address: true,
    // What clients wrote there themselves is taken away, whoever they are.
    forward_client_cert_details: "SANITIZE_SET",
    set_current_client_cert_details: { cert: true },
    stream_idle_timeout: "0s",
    // Who has no call for so long is told to go, as where no Envoy is in front: strangers could otherwise hold every connection there is.
    common_http_protocol_options: { idle_timeout: `${keepaliveMs / 1_000}s` },
    http2_protocol_options: {
      max_concurrent_streams: 100,
      ...(keepaliveMs > 0 && { connection_keepalive: { interval: `${keepaliveMs / 1_000}s`, timeout: `${keepaliveTimeoutMs / 1_000}s` } }),
    },
    route_config: {
      virtual_hosts: [
        { name: "istiod", domains: ["*"], routes: [{ match: { prefix: "/" }, route: { cluster: "istiod", timeout: "0s" } }] },
      ],
    },
    http_filters: [{ name: "router", typed_config: { "@type": `${TYPE}.extensions.filters.http.router.v3.Router` } }],
  };
}

const secret = (name: string): object => ({
  name,
  sds_config: {
    resource_api_version: "V3",
    api_config_source: {
      api_type: "GRPC",
      transport_api_version: "V3",
      grpc_services: [{ envoy_grpc: { cluster_name: "secrets" } }],
    },
  },
});

const MANY = 1_000_000;

function cluster(name: string, path: string): object {
  return {
    name,
    connect_timeout: "5s",
    circuit_breakers: { thresholds: [{ max_connections: MANY, max_pending_requests: MANY, max_requests: MANY }] },
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": `${TYPE}.extensions.upstreams.http.v3.HttpProtocolOptions`,
        explicit_http_config: { http2_protocol_options: {} },
      },
    },
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: [{ endpoint: { address: { pipe: { path } } } }] }] },
  };
}
