import type { Inputs } from "../config/inputs.ts";
import type { Engine } from "../engine/index.ts";
import type { DestinationRule } from "../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { Server } from "../gen/istio/networking/v1alpha3/gateway_pb.js";
import type { VirtualService } from "../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import type { ServiceRef } from "../model/service.ts";
import type { SessionSettings } from "../model/session.ts";
import type { Registry } from "../registry/registry.ts";
import type { ExtensionQuery } from "./lookups/extension-choice.ts";
import type { ServiceAliases } from "./lookups/service-aliases.ts";

/** Process settings that change what is generated; the rest of the settings never gets here. */
export interface GenerateSettings {
  readonly clusterDomain: string;
  readonly clusterId: string;
  readonly sniffOutbound: boolean;
  readonly sniffInbound: boolean;
  readonly edsForHeadless: boolean;
  readonly defaultRequestTimeoutMs: number;
  /** HTTP/1.0 clients are served by all proxies. */
  readonly http10: boolean;
  /** What passes through ports of protocol MONGO is decoded, for statistics. */
  readonly mongoFilter: boolean;
  /** Proxies speak Redis on ports of protocol REDIS, and spread commands by their keys. */
  readonly redisFilter: boolean;
  /** Sessions that services are labelled with. */
  readonly sessions: SessionSettings;
  /** HTTP/3 is served beside HTTPS on gateways whose Service opens the port for UDP too. */
  readonly quicListeners: boolean;
  /** Sidecars have addresses of both families at once: their listeners and endpoints use all of them. */
  readonly dualStack: boolean;
  /** TLS that a Sidecar's ingress listener asks for is ended there. */
  readonly tlsOnSidecarIngress: boolean;
  /** Percentage of requests traced where nothing else says how many. */
  readonly traceSampling: number;
  /** Several external authorizers may be asked about one workload's traffic; else policies that name several deny. */
  readonly severalAuthorizers: boolean;
  /** Who fetches the keys of token issuers: we do; Envoy, where they are at a service of the mesh, else we; or Envoy always. */
  readonly keyFetcher: "istiod" | "hybrid" | "envoy";
  /** Ranges from which hosts without an address get one; empty turns that off. */
  readonly autoAddressRanges: readonly string[];
}

/** Names what a workload may see: its namespace and the Sidecar that applies to it (object key), if any. */
export interface ScopeKey {
  readonly namespace: string;
  readonly sidecar: string | undefined;
}

/** Equal for scopes that are the same: what queries by scope are known by. */
export const scopeId = (key: ScopeKey): string => `${key.namespace}|${key.sidecar ?? ""}`;

/** A service that a scope imports. `ports` narrows it to some of its ports where a Sidecar names the port it wants. */
export interface ScopedService extends ServiceRef {
  readonly ports: readonly number[] | undefined;
}

/** One egress listener of a scope. Without a Sidecar there is exactly one, with no port. */
export interface EgressScope {
  readonly port: { readonly number: number; readonly protocol: string; readonly name: string } | undefined;
  readonly bind: string;
  readonly captureMode: "DEFAULT" | "IPTABLES" | "NONE";
  /** Services imported by this listener, one per host, sorted by host. */
  readonly services: readonly ScopedService[];
  /** Object keys of VirtualServices bound to the mesh and visible here, in order of precedence. */
  readonly virtualServices: readonly string[];
  /** Services that are not imported but that routes of those VirtualServices lead to: they need clusters, but no listeners and no virtual hosts. */
  readonly destinations: readonly ScopedService[];
}

/** What a set of workloads may see. Holds references, never content, so it changes only when membership does. */
export interface Scope extends ScopeKey {
  readonly egress: readonly EgressScope[];
  /** Union of the egress listeners' services, one per host, sorted by host. */
  readonly services: readonly ScopedService[];
  readonly outboundPolicy: "ALLOW_ANY" | "ALLOW_ANY_DYNAMIC_DNS" | "REGISTRY_ONLY";
  /** Where unknown traffic is sent instead of passing through (Sidecar outboundTrafficPolicy.egressProxy). */
  readonly egressProxy: { readonly host: string; readonly subset: string; readonly port: number } | undefined;
}

/** A VirtualService ready to generate from: host names are full, delegates are merged in, rules are in order. */
export interface ResolvedVirtualService {
  readonly key: string;
  readonly namespace: string;
  readonly name: string;
  readonly createdAt: number;
  readonly spec: VirtualService;
}

/** Destination rules for one host, merged as Istio merges them. `spec.host` is full. */
export interface ResolvedDestinationRule {
  readonly keys: readonly string[];
  readonly namespace: string;
  readonly spec: DestinationRule;
}

/** What of a router decides the servers it runs. `targetPorts` are the ports its Service maps. */
export interface GatewayQuery {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly targetPorts: readonly { readonly port: number; readonly targets: readonly number[] }[];
  /** Ports its Service opens for UDP as well; absent where HTTP/3 is not served. */
  readonly udpPorts?: readonly number[];
}

export interface GatewayServer {
  /** "ns/name" of the Gateway. */
  readonly gateway: string;
  readonly namespace: string;
  readonly server: Server;
  readonly family: "http" | "https" | "tls" | "tcp";
  /** Port the listener opens, after the Service's mapping; `server.port.number` is what users wrote. */
  readonly port: number;
  readonly bind: string;
  /** `namespace` "*" takes VirtualServices of all namespaces. */
  readonly hosts: readonly { readonly namespace: string; readonly host: string }[];
  /** Name of the route table, for families that have one. */
  readonly routeName: string | undefined;
  /** HTTP/3 is served beside it, on the same port over UDP. */
  readonly http3: boolean;
}

export interface GatewayPort {
  readonly port: number;
  readonly bind: string;
  readonly kind: "http" | "tls" | "tcp";
  readonly servers: readonly GatewayServer[];
}

export interface MergedGateway {
  readonly ports: readonly GatewayPort[];
}

/** Look-ups that every generator shares. Each method is an engine query: reads are recorded, equal answers keep their identity. */
export interface Lookups {
  scope(key: ScopeKey): Scope;
  virtualService(key: string): ResolvedVirtualService | undefined;
  /** Keys of VirtualServices bound to a gateway ("ns/name") and visible in the namespace of the gateway's workload, in order of precedence. */
  gatewayVirtualServices(gateway: string, namespace: string): readonly string[];
  /** Servers of all Gateways that select a router; make the query with `gatewayQueryOf`. */
  /** The work behind scopes, and behind choosing rules, in small steps: for who is the first to ask. */
  scopeSteps(): Iterable<void>;
  mergedGateway(query: GatewayQuery): MergedGateway;
  /** The service a host means to a client in a namespace: the visible one that takes precedence. */
  visibleService(host: string, namespace: string): ServiceRef | undefined;
  /** Keys of the WasmPlugins and TrafficExtensions that apply to a workload, see `defineExtensionChoice`. */
  extensionsFor(workload: ExtensionQuery): readonly string[];
  /** Names of ExternalName Services: other names of the services they lead to, without clusters of their own. */
  readonly aliases: ServiceAliases;
  /**
   * The rule a client uses for a host: looked up in the client's namespace, then the service's, then the root namespace (exportTo applies).
   * `labels` are the client workload's, for rules with a workloadSelector; pass undefined for the rules without one.
   */
  destinationRule(query: DestinationRuleQuery): ResolvedDestinationRule | undefined;
  /** Rules that were chosen for a host, as one. */
  mergedDestinationRule(keys: readonly string[], host: string): ResolvedDestinationRule | undefined;
  /** Keys of the objects that rule is merged from: equal keys mean the same rule. */
  destinationRuleKeys(query: DestinationRuleQuery): readonly string[];
  /** The same for who asks for many: looks at each namespace once. Not to be kept beyond the run of the query it is made in. */
  destinationRuleChooser(
    client: Pick<DestinationRuleQuery, "clientNamespace" | "labels">,
  ): (service: Pick<ServiceRef, "host" | "namespace">) => readonly string[];
  /** Whether rules with a workloadSelector exist in a namespace: only then does a client's label set matter. */
  hasSelectiveDestinationRules(namespace: string): boolean;
}

export interface DestinationRuleQuery {
  readonly host: string;
  readonly clientNamespace: string;
  readonly serviceNamespace: string;
  readonly labels: Readonly<Record<string, string>> | undefined;
}

/** What generators are made from. Built once per engine in `bin/` (and by tests): no globals, no "push context". */
export interface GenerateContext {
  readonly engine: Engine;
  readonly inputs: Inputs;
  readonly registry: Registry;
  readonly lookups: Lookups;
  readonly settings: GenerateSettings;
}
