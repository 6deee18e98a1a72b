import { Cluster_DnsLookupFamily } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";

/** Families of a workload's addresses that count, the one that is bound first before another. */
export type AddressFamilies = readonly [4 | 6, ...(4 | 6)[]];

const EVERYWHERE = { 4: "0.0.0.0", 6: "::" } as const;
const LOOPBACK = { 4: "127.0.0.1", 6: "::1" } as const;

/** Where listeners for everybody stand. */
export const everywhereOf = (families: AddressFamilies): readonly string[] => families.map((family) => EVERYWHERE[family]);

/** Where listeners for programs on the same machine stand. */
export const loopbacksOf = (families: AddressFamilies): readonly string[] => families.map((family) => LOOPBACK[family]);

/** Where Envoy and its agent find each other. */
export const loopbackOf = (families: AddressFamilies): string => LOOPBACK[families.includes(4) ? 4 : 6];

/** Which answers for a name are of use. */
export const lookupOf = (families: AddressFamilies): Cluster_DnsLookupFamily =>
  families.length > 1 ? Cluster_DnsLookupFamily.ALL : families[0] === 4 ? Cluster_DnsLookupFamily.V4_ONLY : Cluster_DnsLookupFamily.V6_ONLY;
