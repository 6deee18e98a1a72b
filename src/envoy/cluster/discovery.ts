import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Cluster_DiscoveryType, Cluster_DnsLookupFamily, type ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import { ApiVersion } from "../../gen/envoy/config/core/v3/config_source_pb.js";
import { CaresDnsResolverConfigSchema } from "../../gen/envoy/extensions/network/dns_resolver/cares/v3/cares_dns_resolver_pb.js";
import { anyOf } from "../../wire/encode.ts";
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
} as const satisfies Record<ClusterInput["discovery"], Cluster_DiscoveryType>;

const FAMILY = {
  v4: Cluster_DnsLookupFamily.V4_ONLY,
  v6: Cluster_DnsLookupFamily.V6_ONLY,
  all: Cluster_DnsLookupFamily.ALL,
} as const satisfies Record<DnsInput["family"], Cluster_DnsLookupFamily>;

/** A cluster whose assignment does not come must not keep its listener waiting for ever, which 0 would mean. */
const EDS_FETCH_TIMEOUT_MS = 5_000;

/** Spreads the lookups of many proxies that started together. */
const DNS_JITTER_MS = 100;

/** A query over UDP that is lost with its port is lost once: after this many the resolver takes a new port. */
const DNS_UDP_QUERIES = 100;

/** The fields of a cluster that say where its endpoints come from. */
export function discoveryFields(input: ClusterInput): Pick<ClusterInit, DiscoveryField | DnsField> {
  return {
    clusterDiscoveryType: { case: "type", value: TYPE[input.discovery] },
    ...(input.discovery === "eds" && { edsClusterConfig: edsConfig(input.name) }),
    ...(input.assignment !== undefined && { loadAssignment: buildLoadAssignment(input.assignment) }),
    ...(input.dns !== undefined && dnsFields(input.dns)),
  };
}

function edsConfig(serviceName: string): NonNullable<ClusterInit["edsClusterConfig"]> {
  return {
    serviceName,
    edsConfig: {
      configSourceSpecifier: { case: "ads", value: {} },
      resourceApiVersion: ApiVersion.V3,
      initialFetchTimeout: durationFromMs(EDS_FETCH_TIMEOUT_MS),
    },
  };
}

function dnsFields(dns: DnsInput): Pick<ClusterInit, DnsField> {
  const resolver = create(CaresDnsResolverConfigSchema, { udpMaxQueries: DNS_UDP_QUERIES });
  return {
    dnsLookupFamily: FAMILY[dns.family],
    dnsRefreshRate: durationFromMs(dns.refreshMs),
    respectDnsTtl: true,
    dnsJitter: durationFromMs(DNS_JITTER_MS),
    typedDnsResolverConfig: { name: "envoy.network.dns_resolver.cares", typedConfig: anyOf(CaresDnsResolverConfigSchema, resolver) },
  };
}
