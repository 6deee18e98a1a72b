import { create } from "@bufbuild/protobuf";
import { type Filter, FilterSchema } from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import { FilterConfigSchema as HttpForwardSchema } from "../../gen/envoy/extensions/filters/http/dynamic_forward_proxy/v3/dynamic_forward_proxy_pb.js";
import {
  type HttpFilter,
  HttpFilterSchema,
} from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";
import { FilterConfigSchema as SniForwardSchema } from "../../gen/envoy/extensions/filters/network/sni_dynamic_forward_proxy/v3/sni_dynamic_forward_proxy_pb.js";
import { anyOf } from "../../wire/encode.ts";
import { type DnsCacheInput, dnsCache } from "../dns-cache.ts";

/** Resolves the host a request names, where its route leads to a cluster that forwards by name. Other requests pass untouched. */
export function resolvesHost(cache: DnsCacheInput): HttpFilter {
  const config = create(HttpForwardSchema, { implementationSpecifier: { case: "dnsCacheConfig", value: dnsCache(cache) } });
  return create(HttpFilterSchema, {
    name: "envoy.filters.http.dynamic_forward_proxy",
    configType: { case: "typedConfig", value: anyOf(HttpForwardSchema, config) },
  });
}

/** Resolves the name a TLS client says it wants; the connection goes to the given port there. */
export function resolvesSni({ cache, port }: { readonly cache: DnsCacheInput; readonly port: number }): Filter {
  const config = create(SniForwardSchema, { dnsCacheConfig: dnsCache(cache), portSpecifier: { case: "portValue", value: port } });
  return create(FilterSchema, {
    name: "envoy.extensions.filters.network.sni_dynamic_forward_proxy",
    configType: { case: "typedConfig", value: anyOf(SniForwardSchema, config) },
  });
}
