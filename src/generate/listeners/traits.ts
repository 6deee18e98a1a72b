import type { ProxyView } from "../../model/proxy.ts";

/** IP families a proxy has, IPv4 first. */
export type Families = readonly (4 | 6)[];

export const familiesOf = (view: Pick<ProxyView, "addresses">): Families => {
  const families = new Set(view.addresses.map((address): 4 | 6 => (address.includes(":") ? 6 : 4)));
  return families.size === 0 ? [4] : [...families].sort();
};

/** Families that listeners for all addresses stand on: with both at hand, one is enough unless dual stack is asked for (ISTIO_DUAL_STACK). */
export const boundFamilies = (families: Families, dualStack: boolean): Families => (dualStack ? families : families.slice(0, 1));

/** Which answers of a DNS server a proxy of these families can use. */
export function lookupFamily(families: Families, dualStack: boolean): "v4" | "v6" | "all" {
  const [first, ...others] = boundFamilies(families, dualStack);
  return others.length > 0 ? "all" : first === 6 ? "v6" : "v4";
}

/** Addresses that mean "any" and "this machine", one per family. */
export const wildcards = (families: Families): readonly string[] => families.map((family) => (family === 4 ? "0.0.0.0" : "::"));
export const loopbacks = (families: Families): readonly string[] => families.map((family) => (family === 4 ? "127.0.0.1" : "::1"));

/** Name of a listener: what tools show and users write in EnvoyFilters. */
export const listenerName = (address: string, port: number): string => `${address}_${port}`;

/** On which side of a request a connection manager stands; Telemetry may treat them differently. */
export type Side = "client" | "server" | "gateway";

/** Attributes of a proxy that decide the settings all its connection managers share. */
export interface SettingsTraits {
  /** Object keys of the Telemetry objects that apply, the most general first. */
  readonly telemetry: readonly string[];
  /** Object keys of the WasmPlugins and TrafficExtensions that apply. */
  readonly extensions: readonly string[];
  /** The parts of node metadata PROXY_CONFIG that matter here, as JSON; empty = the mesh's defaults hold. */
  readonly proxyConfig: string;
  readonly idleTimeout: string | undefined;
  readonly acceptHttp10: boolean;
  /** Who spans are reported as; undefined where no tracer asks. */
  readonly traced: TracedWorkload | undefined;
  /** Istio's standard metrics are counted; absent where not. */
  readonly standardMetrics?: true;
  /** The mesh logs to the access log service of the bootstrap, and the proxy has an agent, which gave it one. */
  readonly logService?: true;
  /** Hosts of providers (collectors) that the proxy's scope does not have: it has no clusters for them. */
  readonly unreachable: readonly string[];
}

/** A workload as spans name it. */
export interface TracedWorkload {
  /** Name of the proxy's cluster of nodes, usually `app.namespace`. */
  readonly name: string;
  /** The name OpenTelemetry's conventions give it; empty where no provider follows them. */
  readonly otelName: string;
  readonly service: string;
  readonly revision: string;
  readonly meshId: string;
  readonly clusterId: string;
  readonly namespace: string;
}

/** What of a ProxyConfig connection managers depend on. */
export const RELEVANT_PROXY_CONFIG = ["tracing", "proxyHeaders", "gatewayTopology", "connectionSettings", "envoyAccessLogService"] as const;

/** A text that is equal for equal records whatever the order of their fields: the id of structured query keys. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
