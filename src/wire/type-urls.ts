const PREFIX = "type.googleapis.com/";

/** The type URL of a message, as it stands in an `Any` and in discovery requests. */
export const typeUrlOf = (schema: { readonly typeName: string }): string => `${PREFIX}${schema.typeName}`;

export const CLUSTER_TYPE = `${PREFIX}envoy.config.cluster.v3.Cluster`;
export const ENDPOINT_TYPE = `${PREFIX}envoy.config.endpoint.v3.ClusterLoadAssignment`;
export const LISTENER_TYPE = `${PREFIX}envoy.config.listener.v3.Listener`;
export const ROUTE_TYPE = `${PREFIX}envoy.config.route.v3.RouteConfiguration`;
export const SCOPED_ROUTE_TYPE = `${PREFIX}envoy.config.route.v3.ScopedRouteConfiguration`;
export const VIRTUAL_HOST_TYPE = `${PREFIX}envoy.config.route.v3.VirtualHost`;
export const SECRET_TYPE = `${PREFIX}envoy.extensions.transport_sockets.tls.v3.Secret`;
export const EXTENSION_CONFIG_TYPE = `${PREFIX}envoy.config.core.v3.TypedExtensionConfig`;
export const RUNTIME_TYPE = `${PREFIX}envoy.service.runtime.v3.Runtime`;
export const BOOTSTRAP_TYPE = `${PREFIX}envoy.config.bootstrap.v3.Bootstrap`;
export const NAME_TABLE_TYPE = `${PREFIX}istio.networking.nds.v1.NameTable`;
export const PROXY_CONFIG_TYPE = `${PREFIX}istio.mesh.v1alpha1.ProxyConfig`;
export const HEALTH_TYPE = `${PREFIX}istio.v1.HealthInformation`;
export const PEER_TYPE = `${PREFIX}istio.v1.PeerWorkload`;

const SHORT_NAMES: ReadonlyMap<string, string> = new Map([
  [CLUSTER_TYPE, "cds"],
  [ENDPOINT_TYPE, "eds"],
  [LISTENER_TYPE, "lds"],
  [ROUTE_TYPE, "rds"],
  [SCOPED_ROUTE_TYPE, "srds"],
  [VIRTUAL_HOST_TYPE, "vhds"],
  [SECRET_TYPE, "sds"],
  [EXTENSION_CONFIG_TYPE, "ecds"],
  [RUNTIME_TYPE, "rtds"],
  [BOOTSTRAP_TYPE, "bds"],
  [NAME_TABLE_TYPE, "nds"],
  [PROXY_CONFIG_TYPE, "pcds"],
  [PEER_TYPE, "peers"],
]);

/** What people call a type (`cds`, `eds`); the last part of the URL where there is no such name. Used in logs, metrics and debug pages. */
export const shortTypeName = (typeUrl: string): string => SHORT_NAMES.get(typeUrl) ?? typeUrl.slice(typeUrl.lastIndexOf("/") + 1);
