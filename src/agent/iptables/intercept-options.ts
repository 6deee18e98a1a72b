import type { Cidr } from "../../base/address.ts";

/** Everything, or what is listed. */
export type Selection<T> = "all" | readonly T[];

/** What of a machine's traffic goes through its Envoy: the whole input of the rules. */
export interface InterceptOptions {
  /** `TPROXY` keeps the caller's address on inbound connections; outbound ones are always redirected. */
  readonly mode: "REDIRECT" | "TPROXY";
  readonly outboundPort: number;
  readonly inboundPort: number;
  /** Port of tunnelled connections, which go to Envoy as they are. */
  readonly tunnelPort: number;
  /** Users and groups that Envoy and the agent run as: what they send is not sent back to them. */
  readonly proxyUsers: readonly string[];
  readonly proxyGroups: readonly string[];
  readonly inboundPorts: Selection<number>;
  /** Counts where all ports are intercepted. */
  readonly inboundPortsExcluded: readonly number[];
  readonly outboundRanges: Selection<Cidr>;
  /** Counts where all addresses are intercepted. */
  readonly outboundRangesExcluded: readonly Cidr[];
  /** Ports that are intercepted whatever the address. */
  readonly outboundPorts: readonly number[];
  readonly outboundPortsExcluded: readonly number[];
  /** Groups whose programs are intercepted, and those that are not. */
  readonly ownerGroups: Selection<string>;
  readonly ownerGroupsExcluded: readonly string[];
  /** Interfaces that are left alone. */
  readonly excludedInterfaces: readonly string[];
  /** Interfaces of virtual machines: what comes in from them is treated as outbound. */
  readonly virtualInterfaces: readonly string[];
  /** Where names are asked for: `all` servers, those listed (from resolv.conf), or, if none, not intercepted. */
  readonly dnsServers: Selection<string>;
  /** Packets that belong to no connection are dropped instead of being answered with a reset. */
  readonly dropInvalid: boolean;
  /** Addresses of the machine's own loopback that programs call on purpose. */
  readonly loopback4: string;
  readonly mark: number;
  readonly routeTable: number;
}

/** Where the agent answers questions for names. */
export const DNS_PORT = 15_053;
