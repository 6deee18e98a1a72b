import type { Message } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { isIp } from "../../base/address.ts";
import { AccessLogSchema } from "../../gen/envoy/config/accesslog/v3/accesslog_pb.js";
import { CidrRangeSchema, SocketAddress_Protocol, SocketAddressSchema } from "../../gen/envoy/config/core/v3/address_pb.js";
import { TransportSocketSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
import { TypedExtensionConfigSchema } from "../../gen/envoy/config/core/v3/extension_pb.js";
import { FilterChainMatchSchema, FilterSchema, ListenerFilterSchema } from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import { type Listener, ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import { ConnectionLimitSchema } from "../../gen/envoy/extensions/filters/network/connection_limit/v3/connection_limit_pb.js";
import {
  HttpConnectionManagerSchema,
  HttpFilterSchema,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import {
  TcpProxy_UpstreamConnectMode as ConnectMode,
  TcpProxySchema,
} from "../../gen/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb.js";
import { type CommonTlsContext, DownstreamTlsContextSchema } from "../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js";
import { TokenBucketSchema } from "../../gen/envoy/type/v3/token_bucket_pb.js";
import { at, type Fault } from "./fault.ts";
import { typeNameOf } from "./merge-any.ts";
import { isRepeated, type MessageRule, messageRule, secondsOf } from "./message-rule.ts";
import type { AnyFilter } from "./terminal-filters.ts";

/** How often Envoy refills the bucket of a rate limit at most. */
const SHORTEST_FILL_SECONDS = 0.05;

export const LISTENER_RULES: readonly MessageRule[] = [
  messageRule(ListenerSchema, listenerFaults),
  messageRule(FilterChainMatchSchema, ({ addressSuffix, suffixLen, serverNames }) => [
    (addressSuffix !== "" || suffixLen !== undefined) && at("address_suffix", "is not implemented by Envoy, nor is suffix_len"),
    serverNames.some((name) => name.replace(/^\*\./, "").includes("*")) && at("server_names", "can have * as a whole first label only"),
  ]),
  messageRule(CidrRangeSchema, ({ addressPrefix }) => [!isIp(addressPrefix) && at("address_prefix", "must be an IP address")]),
  messageRule(SocketAddressSchema, ({ portSpecifier, resolverName }) => [
    portSpecifier.case === "namedPort" && resolverName === "" && at("named_port", "needs a resolver_name"),
  ]),
  messageRule(HttpConnectionManagerSchema, (manager) => [
    manager.useRemoteAddress === true &&
      manager.originalIpDetectionExtensions.length > 0 &&
      at("original_ip_detection_extensions", "cannot be combined with use_remote_address"),
    manager.commonHttpProtocolOptions?.maxResponseHeadersKb !== undefined &&
      at("common_http_protocol_options.max_response_headers_kb", "is for clusters"),
    isRepeated(manager.upgradeConfigs.map(({ upgradeType }) => upgradeType.toLowerCase())) &&
      at("upgrade_configs", "must not repeat an upgrade_type"),
  ]),
  messageRule(TcpProxySchema, ({ upstreamConnectMode, maxEarlyDataBytes }) => [
    upstreamConnectMode !== ConnectMode.IMMEDIATE &&
      maxEarlyDataBytes === undefined &&
      at("max_early_data_bytes", "must be set where upstream_connect_mode waits"),
  ]),
  // Envoy passes over an optional filter that it does not know.
  messageRule(HttpFilterSchema, (filter) => (filter.isOptional ? [] : [nameless(filter), misplaced(filter.configType, "http")])),
  messageRule(FilterSchema, (filter) => [nameless(filter), misplaced(filter.configType, "network")]),
  messageRule(ListenerFilterSchema, (filter) => [nameless(filter), misplaced(filter.configType, "listener")]),
  messageRule(TransportSocketSchema, (socket) => [nameless(socket)]),
  messageRule(AccessLogSchema, (log) => [nameless(log)]),
  messageRule(DownstreamTlsContextSchema, ({ commonTlsContext: common }) => [
    !hasCertificate(common) && at("common_tls_context", "must have a certificate"),
  ]),
  messageRule(TypedExtensionConfigSchema, ({ typedConfig }) => [
    typedConfig !== undefined && isForRoutes(typedConfig) && at("typed_config", `cannot be a ${typeNameOf(typedConfig)} in this place`),
  ]),
  messageRule(TokenBucketSchema, ({ fillInterval }) => [
    secondsOf(fillInterval, SHORTEST_FILL_SECONDS) < SHORTEST_FILL_SECONDS && at("fill_interval", "must be at least 0.05s"),
  ]),
  messageRule(ConnectionLimitSchema, ({ maxConnections }) => [maxConnections === undefined && at("max_connections", "must be set")]),
];

function listenerFaults(listener: Listener): readonly (Fault | false)[] {
  const names = listener.filterChains.map(({ name }) => name);
  const isInternal = listener.listenerSpecifier.case === "internalListener";
  return [
    !isInternal && listener.address === undefined && at("address", "must be set"),
    isInternal && listener.address !== undefined && at("internal_listener", "cannot be combined with an address"),
    !isInternal &&
      listener.address?.address.case === "envoyInternalAddress" &&
      at("address", "needs internal_listener where it is an internal one"),
    listener.udpListenerConfig?.quicOptions !== undefined &&
      listener.address?.address.case === "socketAddress" &&
      listener.address.address.value.protocol !== SocketAddress_Protocol.UDP &&
      at("udp_listener_config.quic_options", "is for listeners of UDP"),
    listener.additionalAddresses.some(({ address }) => address === undefined) && at("additional_addresses", "must have an address each"),
    listener.apiListener !== undefined && listener.apiListener.apiListener === undefined && at("api_listener.api_listener", "must be set"),
    listener.filterChainMatcher !== undefined &&
      (names.includes("") || isRepeated(names)) &&
      at("filter_chain_matcher", "needs filter chains with a name each, and no two the same"),
  ];
}

/** Where a server finds the certificate that it shows. */
const hasCertificate = (common: CommonTlsContext | undefined): boolean =>
  common !== undefined &&
  (common.tlsCertificates.length + common.tlsCertificateSdsSecretConfigs.length > 0 || common.tlsCertificateProviderInstance !== undefined);

/** Without a type Envoy goes by the name, and all names that it knows begin with its own. */
const nameless = ({ name, configType }: AnyFilter): Fault | false =>
  configType.case === undefined && !name.startsWith("envoy.") && at("typed_config", "must be set");

const FILTER_PACKAGE = /^envoy\.extensions\.filters\.(http|network|listener|udp)\./;

/** A filter of another kind, or what routes say about one: Envoy has no filter of such a type in this place. */
function misplaced(config: { readonly case: string | undefined; readonly value?: Message | undefined }, place: string): Fault | false {
  if (config.case !== "typedConfig") return false;
  const any = config.value as Any;
  const type = typeNameOf(any);
  const kind = FILTER_PACKAGE.exec(type)?.[1];
  const isElsewhere = kind !== undefined && kind !== place && !(place === "listener" && kind === "udp");
  return (isElsewhere || isForRoutes(any)) && at("typed_config", `cannot be a ${type} in this place`);
}

/** Whether a configuration is what routes say about a filter, which is no filter and no other extension. */
const isForRoutes = (any: Any): boolean => any.value.length > 0 && /(PerRoute(Config)?|CorsPolicy)$/.test(typeNameOf(any));
