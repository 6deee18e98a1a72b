import { Interned } from "../../base/interned.ts";
import type { EncodedDomains } from "../../envoy/route/route-table.ts";
import type { PlainHost } from "./plain-hosts.ts";

/** A virtual host that a table is to have: where its routes come from, but not what they are. The same object in all tables that have it so. */
export interface PlannedHost {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** Set where the table stands for all ports: a destination that names none then means its only one. */
  readonly anyPort?: true;
  readonly domains: EncodedDomains;
  /** Undefined for a host that only a VirtualService names. */
  readonly service: PlainHost | undefined;
  /** Keys of the VirtualServices that may speak for it: the first that has a rule for the client does. */
  readonly vs: readonly string[];
}

/** Hosts of a table that stand together in those of most namespaces: one object for equal lists, so what is made of it serves all. */
export type HostGroup = readonly PlannedHost[];

const known = new WeakMap<EncodedDomains, Map<string, PlannedHost>>();

/** One object for equal hosts: hundreds of namespaces plan nearly the same tables. */
export function planned(host: PlannedHost): PlannedHost {
  const alike = known.get(host.domains) ?? new Map<string, PlannedHost>();
  known.set(host.domains, alike);
  const id = `${host.name} ${host.vs.join()}`;
  const before = alike.get(id);
  if (before?.service === host.service && before !== undefined) return before;
  alike.set(id, host);
  return host;
}

/** A change of one host costs the group it is in, and groups are few enough to be remembered for every namespace. */
const MOST_IN_GROUP = 32;

/** Divides hosts where the namespace of their services changes, and where there are too many of one. */
export function groupsOf(hosts: readonly PlannedHost[]): readonly HostGroup[] {
  const groups: HostGroup[] = [];
  let from = 0;
  for (let at = 1; at <= hosts.length; at++) {
    if (at < hosts.length && at - from < MOST_IN_GROUP && namespaceOf(hosts[at]) === namespaceOf(hosts[from])) continue;
    groups.push(sharedGroup(hosts.slice(from, at)));
    from = at;
  }
  return groups;
}

const namespaceOf = (host: PlannedHost | undefined): string | undefined => host?.service?.namespace;

const groups = new Interned<HostGroup>();
const numbers = new WeakMap<HostGroup | PlannedHost, number>();
let lastNumber = 0;

/** One object for lists of the same hosts. */
export const sharedGroup = (hosts: readonly PlannedHost[]): HostGroup => groups.of(hosts.map(numberOf).join(), () => hosts);

/** A number for a group, or a host, that no other has. */
export function numberOf(one: HostGroup | PlannedHost): number {
  const number = numbers.get(one);
  if (number !== undefined) return number;
  lastNumber += 1;
  numbers.set(one, lastNumber);
  return lastNumber;
}

export const sameGroups = (a: readonly HostGroup[], b: readonly HostGroup[]): boolean =>
  a === b || (a.length === b.length && a.every((group, index) => group === b[index]));
