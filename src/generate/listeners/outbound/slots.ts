import { ipFamily, isIp } from "../../../base/address.ts";
import { contentHash } from "../../../base/hash.ts";
import type { Query } from "../../../engine/index.ts";
import { isHttp, type Protocol, parseProtocol } from "../../../model/protocol.ts";
import { addressesIn, refOf, type Service, type ServicePort, type ServiceRef, servedAt, serviceKey } from "../../../model/service.ts";
import type { EgressScope, GenerateContext, ScopedService } from "../../context.ts";
import { reservedPorts } from "../reserved-ports.ts";
import { type Families, listenerName, loopbacks, wildcards } from "../traits.ts";

type Context = Pick<GenerateContext, "engine" | "inputs" | "registry" | "settings">;

/** Attributes of a proxy that decide where its outbound listeners stand. */
export interface PlacementTraits {
  readonly families: Families;
  /** Nothing is redirected to the proxy: listeners open their ports themselves. */
  readonly bindsPorts: boolean;
  /** Names resolve to the addresses we allocate, so those can be told apart by. */
  readonly dnsCapture: boolean;
  /** The other cluster whose addresses of services count. */
  readonly remoteCluster: string;
  /** The proxy may not open ports below 1024. */
  readonly unprivileged: boolean;
  /** Ports of the listeners in the proxy's bootstrap. */
  readonly bootstrapPorts: readonly number[];
}

/** A port of a service on a listener. Several services may stand on one listener: what becomes of that is decided when it is put together. */
export interface Slot {
  readonly listener: string;
  readonly bind: { readonly addresses: readonly string[]; readonly port: number } | { readonly unixPath: string };
  readonly bindToPort: boolean;
  /** The listener stands for all addresses, not for one of the service. */
  readonly wildcard: boolean;
  readonly kind: "http" | "tcp" | "auto";
  readonly protocol: Protocol;
  readonly service: ServiceRef;
  readonly port: number;
  /** Ranges of addresses the service claims on a wildcard listener. */
  readonly ranges: readonly string[];
  /** Connections go to whatever names clients ask for (resolution DYNAMIC_DNS). */
  readonly byName?: true;
  /** The service has no address of its own. */
  readonly addressless: boolean;
  /** The service has ranges of addresses, and this listener stands for more than one address. */
  readonly ranged: boolean;
  /** Address of the endpoint this slot is for, where clients connect to endpoints directly. */
  readonly endpoint: string | undefined;
  /** Services meant for some namespaces win conflicts against those for all, then the older; names settle ties. */
  readonly public: boolean;
  readonly age: number;
  readonly title: string;
  /** Index of the egress listener it came through. */
  readonly egress: number;
}

/** Where slots are looked for: the same for all services of an egress listener. */
export interface SlotSite extends PlacementTraits {
  readonly egress: number;
  readonly listener: Pick<EgressScope, "port" | "bind" | "captureMode">;
}

export interface SlotQuery extends SlotSite {
  /** Stands for the site. */
  readonly siteId: string;
  readonly service: ServiceRef;
  readonly ports: readonly number[] | undefined;
}

/** Asks for the slots of services at one site. */
export function slotQueries(site: SlotSite): (service: ScopedService) => SlotQuery {
  const siteId = contentHash(JSON.stringify(site));
  return (service) => ({ ...site, siteId, service: refOf(service), ports: service.ports });
}

/** Where the ports of one service listen, by the rules of Istio's outbound listeners: HTTP on the port, TCP on the service's address and port. */
export function defineSlots(ctx: Context): Query<SlotQuery, readonly Slot[]> {
  return ctx.engine.query<SlotQuery, readonly Slot[]>({
    name: "outboundSlots",
    id: ({ service, ports, siteId }) => `${serviceKey(service)}|${ports?.join() ?? ""}|${siteId}`,
    compute: (query) => {
      const service = ctx.registry.service(query.service);
      if (service === undefined || service.resolution === "alias") return [];
      return service.ports
        .filter(({ number, protocol }) => protocol !== "UDP" && (query.ports === undefined || query.ports.includes(number)))
        .flatMap((port) => slotsOf(ctx, { query, service: servedAt(service, port), port }));
    },
  });
}

interface Placing {
  readonly query: SlotQuery;
  readonly service: Service;
  readonly port: ServicePort;
}

function slotsOf(ctx: Context, placing: Placing): readonly Slot[] {
  const { query, service, port } = placing;
  const asked = query.listener.port;
  const protocol = asked === undefined ? port.protocol : (parseProtocol(asked.protocol) ?? "Auto");
  const number = asked?.number ?? port.number;
  if (protocol === "UDP") return [];
  const bindToPort = query.bindsPorts || query.listener.bind.startsWith("unix://") || query.listener.captureMode === "NONE";
  if (bindToPort && query.unprivileged && number > 0 && number < 1024) return [];
  const addresses = addressesFor(service, query);
  const base = {
    bindToPort,
    kind: kindOf(protocol, ctx.settings.sniffOutbound),
    protocol,
    service: refOf(service),
    port: number,
    ranges: [],
    ...(service.resolution === "dynamicDns" && { byName: true as const }),
    addressless: addresses.length === 0,
    ranged: addresses.some((address) => address.includes("/")),
    endpoint: undefined,
    public: service.exportTo.length === 0 || service.exportTo.includes("*"),
    age: service.createdAt,
    title: `${service.source === "Kubernetes" ? service.name : service.host}.${service.namespace}`,
    egress: query.egress,
  };
  const reserved = reservedPorts(ctx, query.bootstrapPorts);
  return bindingsOf(ctx, placing, base).flatMap((binding) => (binding.wildcard && reserved.has(number) ? [] : [{ ...base, ...binding }]));
}

const kindOf = (protocol: Protocol, sniff: boolean): Slot["kind"] =>
  isHttp(protocol) ? "http" : protocol === "Auto" && sniff ? "auto" : "tcp";

type Binding = Pick<Slot, "listener" | "bind" | "wildcard"> & Partial<Pick<Slot, "ranges" | "ranged" | "endpoint">>;

function bindingsOf(ctx: Context, { query, service, port }: Placing, base: Pick<Slot, "kind" | "port" | "bindToPort">): readonly Binding[] {
  const { bind } = query.listener;
  if (bind.startsWith("unix://")) {
    return [{ listener: listenerName(bind, 0), bind: { unixPath: bind.slice("unix://".length) }, wildcard: false }];
  }
  const at = (addresses: readonly string[], wildcard: boolean): Binding => ({
    listener: listenerName(addresses[0] ?? "", base.port),
    bind: { addresses, port: base.port },
    wildcard,
  });
  if (bind !== "") return [at([bind], bind === "0.0.0.0" || bind === "::")];
  if (base.bindToPort) return [at(loopbacks(query.families), false)];
  const everywhere = at(wildcards(query.families), true);
  if (base.kind === "http") return [everywhere];
  const addresses = addressesFor(service, query);
  if (addresses.length > 0) return addressBindings(service, addresses, { at, everywhere });
  if (!service.headless && service.resolution !== "none") return [everywhere];
  const endpoints = ctx.registry.endpoints(service, port.number).map(({ address }) => address);
  // A ServiceEntry that lists no endpoints and selects none forwards to wherever the client wanted: that needs a listener for all addresses.
  if (endpoints.length === 0) return service.source !== "Kubernetes" && service.selector === undefined ? [everywhere] : [];
  return [...new Set(endpoints)].filter(isIp).map((address) => ({ ...at([address], false), endpoint: address }));
}

interface Places {
  readonly at: (addresses: readonly string[], wildcard: boolean) => Binding;
  readonly everywhere: Binding;
}

/** The addresses of a Kubernetes Service are one place in two families; those of a ServiceEntry are places of their own. */
function addressBindings(service: Service, addresses: readonly string[], { at, everywhere }: Places): readonly Binding[] {
  const single = addresses.filter((address) => !address.includes("/"));
  const ranges = addresses.filter((address) => address.includes("/"));
  const listeners =
    service.source === "Kubernetes" && single.length > 0 ? [at(single, false)] : single.map((address) => at([address], false));
  return [...listeners.map((listener) => ({ ...listener, ranged: false })), ...ranges.map((range) => ({ ...everywhere, ranges: [range] }))];
}

/** Addresses a client connects to; of those nobody wrote for this proxy, only the ones of its families. A range of one is an address. */
function addressesFor(service: Service, { families, dnsCapture, remoteCluster }: PlacementTraits): readonly string[] {
  const own = addressesIn(service, remoteCluster).map((address) =>
    address.endsWith(address.includes(":") ? "/128" : "/32") ? address.slice(0, address.lastIndexOf("/")) : address,
  );
  const known = own.length > 0 || !dnsCapture ? own : service.autoAddresses;
  if (own.length > 0 && service.source !== "Kubernetes") return own.filter(isSpecific);
  const reachable = known.filter((address) => families.includes(ipFamily(address.split("/", 1)[0] ?? "") as 4 | 6));
  return (reachable.length > 0 ? reachable : known).filter(isSpecific);
}

const isSpecific = (address: string): boolean => address !== "0.0.0.0" && address !== "::";
