import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationOfMs } from "../../base/duration.ts";
import { Cluster_DiscoveryType, type ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import { ApiVersion, ConfigSourceSchema } from "../../gen/envoy/config/core/v3/config_source_pb.js";
import { ClusterConfigSchema as ForwardProxySchema } from "../../gen/envoy/extensions/clusters/dynamic_forward_proxy/v3/cluster_pb.js";
import { CaresDnsResolverConfigSchema } from "../../gen/envoy/extensions/network/dns_resolver/cares/v3/cares_dns_resolver_pb.js";
import { anyOf, encodedOnce } from "../../wire/encode.ts";
import { dnsCache, LOOKUP_FAMILY } from "../dns-cache.ts";
import { buildLoadAssignment } from "../endpoint/load-assignment.ts";
import type { ClusterInput, DnsInput } from "./cluster-input.ts";

type ClusterInit = MessageInitShape<typeof ClusterSchema>;
type DiscoveryField = "clusterDiscoveryType" | "edsClusterConfig" | "loadAssignment";
type DnsField = "dnsLookupFamily" | "dnsRefreshRate" | "respectDnsTtl" | "dnsJitter" | "typedDnsResolverConfig";

const TYPE = {
  eds: Cluster_DiscoveryType.EDS,
  strictDns: Cluster_DiscoveryType.STRICT_DNS,
  logicalDns: Cluster_DiscoveryType.LOGICAL_DNS,
  originalDst: Cluster_DiscoveryType.ORIGINAL_DST,
  static: Cluster_DiscoveryType.STATIC,
} as const satisfies Record<Extract<ClusterInput["discovery"], string>, Cluster_DiscoveryType>;

/** A cluster whose assignment does not come must not keep its listener waiting for ever, which 0 would mean. */
const EDS_FETCH_TIMEOUT_MS = 5_000;

/** Spreads the lookups of many proxies that started together. */
const DNS_JITTER_MS = 100;

/** A query over UDP that is lost with its port is lost once: after this many the resolver takes a new port. */
const DNS_UDP_QUERIES = 100;

const RESOLVER = anyOf(CaresDnsResolverConfigSchema, { udpMaxQueries: DNS_UDP_QUERIES });

const EDS_CONFIG = encodedOnce(ConfigSourceSchema, {
  configSourceSpecifier: { case: "ads", value: {} },
  resourceApiVersion: ApiVersion.V3,
  initialFetchTimeout: durationOfMs(EDS_FETCH_TIMEOUT_MS),
});

/** The fields of a cluster that say where its endpoints come from. */
export function discoveryFields(input: ClusterInput): Pick<ClusterInit, DiscoveryField | DnsField> {
  return {
    clusterDiscoveryType: discoveryType(input),
    ...(input.discovery === "eds" && { edsClusterConfig: { serviceName: input.name, edsConfig: EDS_CONFIG } }),
    ...(input.assignment !== undefined && { loadAssignment: buildLoadAssignment(input.assignment) }),
    ...(input.dns !== undefined && dnsFields(input.dns)),
  };
}

function discoveryType({ discovery, http, transport }: ClusterInput): NonNullable<ClusterInit["clusterDiscoveryType"]> {
  if (typeof discovery === "string") return { case: "type", value: TYPE[discovery] };
  const typedConfig = anyOf(ForwardProxySchema, {
    clusterImplementationSpecifier: { case: "dnsCacheConfig", value: dnsCache(discovery.cache) },
    // In plain text, and with no options of HTTP in which names could follow the request, Envoy does not ask.
    allowInsecureClusterOptions: discovery.fixedNames && (http !== undefined || transport.security.kind !== "plain"),
  });
  return { case: "clusterType", value: { name: "envoy.clusters.dynamic_forward_proxy", typedConfig } };
}

function dnsFields(dns: DnsInput): Pick<ClusterInit, DnsField> {
  return {
    dnsLookupFamily: LOOKUP_FAMILY[dns.family],
    dnsRefreshRate: durationOfMs(dns.refreshMs),
    respectDnsTtl: true,
    dnsJitter: durationOfMs(DNS_JITTER_MS),
    typedDnsResolverConfig: { name: "envoy.network.dns_resolver.cares", typedConfig: RESOLVER },
  };
}
