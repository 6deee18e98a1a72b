import type { JsonObject } from "@bufbuild/protobuf";
import type { ProxyView } from "../../model/proxy.ts";

/** IP families a proxy has, the primary one first. */
export type Families = readonly (4 | 6)[];

export const familiesOf = (view: Pick<ProxyView, "addresses">): Families => {
  const families = [...new Set(view.addresses.map((address) => (address.includes(":") ? 6 : 4) as 4 | 6))];
  return families.length === 0 ? [4] : families;
};

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
  /** The parts of node metadata PROXY_CONFIG that matter here, as JSON; empty = the mesh's defaults hold. */
  readonly proxyConfig: string;
  readonly idleTimeout: string | undefined;
  readonly acceptHttp10: boolean;
  /** Name spans are reported under, where a tracer wants one. */
  readonly tracingService: string;
}

const RELEVANT_PROXY_CONFIG = ["tracing", "proxyHeaders", "gatewayTopology"] as const;

/** Keeps what connection managers depend on, so that proxies which differ elsewhere in their ProxyConfig still share their listeners. */
export function relevantProxyConfig(json: string): string {
  const config: unknown = json === "" ? undefined : JSON.parse(json);
  if (typeof config !== "object" || config === null) return "";
  const fields = config as JsonObject;
  return JSON.stringify(
    Object.fromEntries(RELEVANT_PROXY_CONFIG.flatMap((field) => (fields[field] === undefined ? [] : [[field, fields[field]]]))),
  );
}

/** A text that is equal for equal records whatever the order of their fields: the id of structured query keys. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
