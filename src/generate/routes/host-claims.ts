import { hostsOverlap, matchesHost } from "../../base/hostname.ts";
import type { HTTPMatchRequest, VirtualService } from "../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import type { ServiceRef } from "../../model/service.ts";
import type { Registry } from "../../registry/registry.ts";
import type { EgressScope } from "../context.ts";
import { MESH_GATEWAY } from "../lookups/virtual-services.ts";
import type { PlainHost } from "./plain-hosts.ts";

/** What a VirtualService claims: nothing else of it decides which hosts a table has. */
export interface Claimant {
  readonly key: string;
  readonly hosts: readonly string[];
  /** Ports at which it has a rule for every client; 0: at all. */
  readonly openAt: readonly number[];
}

/** What a VirtualService claims. */
export function claimantOf(key: string, { hosts, http }: Pick<VirtualService, "hosts" | "http">): Claimant {
  const ports = http.flatMap(({ match }) => (match.length === 0 ? [0] : match.filter(isForAll).map(({ port }) => port)));
  return { key, hosts, openAt: ports.includes(0) ? [0] : [...new Set(ports)].sort((a, b) => a - b) };
}

const isForAll = ({ gateways, sourceNamespace, sourceLabels }: HTTPMatchRequest): boolean =>
  (gateways.length === 0 || gateways.includes(MESH_GATEWAY)) && sourceNamespace === "" && Object.keys(sourceLabels).length === 0;

/** Keys of VirtualServices by host, in order of precedence. */
export interface Claims {
  /** Those that may speak for each declared host. */
  readonly owners: ReadonlyMap<string, readonly string[]>;
  /** Hosts that only VirtualServices name. */
  readonly bare: ReadonlyMap<string, readonly string[]>;
}

/** What of an egress listener decides which hosts there are. */
export type Imports = Pick<EgressScope, "services" | "virtualServices">;

/** A port of the mesh and what is known there. */
export interface ClaimsQuery {
  readonly port: number;
  /** The table stands for all ports, this among them. */
  readonly anyPort?: true;
  readonly egress: Imports;
  /** Those that speak HTTP at the port. */
  readonly services: readonly Pick<PlainHost, "host">[];
  readonly claimants: readonly Claimant[];
}

/**
 * Who speaks for which host. An exact host goes before a wildcard, then the first object in order of precedence has it; behind one that has
 * no rule for the client the next one counts, but not behind a wildcard (Istio does the same).
 * Hosts without a service on this port are served beside those that have one, and on port 80 always, because that is where people
 * who call them expect it (Istio does the same).
 */
export function claimsOf(registry: Registry, query: ClaimsQuery): Claims {
  const { claimants, services, port, anyPort } = query;
  const declared = new Set(services.map(({ host }) => host));
  const owners = new Map<string, string[]>();
  const bare = new Map<string, string[]>();
  const claim = (host: string, vs: string, into: Map<string, string[]>): void => {
    const before = into.get(host);
    if (before === undefined) into.set(host, [vs]);
    else before.push(vs);
  };
  for (const { key, hosts } of claimants)
    for (const host of hosts) if (declared.has(host) && !host.startsWith("*")) claim(host, key, owners);
  const wildcards = claimants
    .flatMap(({ key, hosts }) => hosts.filter((host) => host.startsWith("*")).map((host) => ({ host, key })))
    .sort((a, b) => b.host.length - a.host.length);
  for (const { host } of wildcards.length === 0 ? [] : services) {
    const best = wildcards.find((wildcard) => matchesHost(wildcard.host, host));
    if (best !== undefined && !owners.has(host)) claim(host, best.key, owners);
  }
  const speaking = new Set([...owners.values()].flat());
  const registered = registeredIn(registry, query);
  for (const { key, hosts } of claimants) {
    if ((port !== 80 || anyPort === true) && !speaking.has(key)) continue;
    for (const host of hosts) if (!declared.has(host) && !registered(host)) claim(host, key, bare);
  }
  return { owners, bare };
}

/** Whether some service has a name at the port, whatever it speaks: then it is no name that VirtualServices alone know. */
function registeredIn(registry: Registry, { egress, services, port, anyPort }: ClaimsQuery): (host: string) => boolean {
  const isAtPort = (ref: ServiceRef): boolean =>
    anyPort === true || registry.service(ref)?.ports.some(({ number }) => number === port) === true;
  let refs: ReadonlyMap<string, ServiceRef> | undefined;
  return (host) => {
    if (host.startsWith("*"))
      return (
        services.some((one) => matchesHost(host, one.host)) || egress.services.some((ref) => hostsOverlap(host, ref.host) && isAtPort(ref))
      );
    refs ??= new Map(egress.services.map((ref) => [ref.host, ref]));
    const ref = refs.get(host);
    return ref !== undefined && isAtPort(ref);
  };
}
