import { create } from "@bufbuild/protobuf";
import { Cluster_DnsLookupFamily } from "../gen/envoy/config/cluster/v3/cluster_pb.js";
import { type DnsCacheConfig, DnsCacheConfigSchema } from "../gen/envoy/extensions/common/dynamic_forward_proxy/v3/dns_cache_pb.js";

/**
 * A store of names that a proxy has resolved for requests. The filter that resolves and the cluster that connects name the same one, and
 * Envoy demands that they say the same of it.
 */
export interface DnsCacheInput {
  readonly name: string;
  readonly family: "v4" | "v6" | "all";
  readonly maxHosts?: number;
}

/** Which answers of a DNS server are of use. */
export const LOOKUP_FAMILY = {
  v4: Cluster_DnsLookupFamily.V4_ONLY,
  v6: Cluster_DnsLookupFamily.V6_ONLY,
  all: Cluster_DnsLookupFamily.ALL,
} as const satisfies Record<DnsCacheInput["family"], Cluster_DnsLookupFamily>;

export const dnsCache = ({ name, family, maxHosts }: DnsCacheInput): DnsCacheConfig =>
  create(DnsCacheConfigSchema, { name, dnsLookupFamily: LOOKUP_FAMILY[family], ...(maxHosts !== undefined && { maxHosts }) });
