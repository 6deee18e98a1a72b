import { EdgeError, messageOf } from "../base/errors.ts";
import type { StructValue } from "../wire/field-writer.ts";

/** What the agent itself needs of ProxyConfig; all of it is passed on to the control plane. */
export interface AgentProxyConfig {
  /** As it was given: node metadata PROXY_CONFIG. */
  readonly given: Readonly<Record<string, StructValue>>;
  readonly adminPort: number;
  readonly statusPort: number;
  readonly concurrency: number | undefined;
  readonly drainMs: number;
  readonly terminationDrainMs: number;
  /** How often and from how much on Envoy writes its access logs. */
  readonly fileFlushMs: number;
  readonly fileFlushKb: number;
  readonly discoveryAddress: string;
  /** The control plane is called without TLS. */
  readonly plaintext: boolean;
  /** What the workload is called in traces, or by which rule that is found; empty where nothing is said. */
  readonly serviceCluster: string;
  readonly tracingServiceName: string;
  readonly interceptionMode: string;
  /** Envoy; empty where nothing is said. */
  readonly binaryPath: string;
  /** A bootstrap of the user's own, run as it is in place of the one that is made; empty where there is none. */
  readonly customConfigFile: string;
  /** Variables `ISTIO_META_*` of `proxyMetadata`: they are node metadata like those of the environment, which go before them. */
  readonly nodeMetadata: Readonly<Record<string, string>>;
}

type Given = AgentProxyConfig["given"];

/** Reads PROXY_CONFIG, over what is said elsewhere. Throws `EdgeError` for what is no YAML object or has a wrong type. */
export async function readProxyConfig(text: string, below: Given = {}): Promise<AgentProxyConfig> {
  const given = merged(below, await parse(text));
  const read = reader(given);
  return {
    given,
    adminPort: read.number("proxyAdminPort") ?? 15_000,
    statusPort: read.number("statusPort") ?? 15_020,
    concurrency: read.number("concurrency"),
    drainMs: read.duration("drainDuration") ?? 45_000,
    terminationDrainMs: read.duration("terminationDrainDuration") ?? 5_000,
    fileFlushMs: read.duration("fileFlushInterval") ?? 1_000,
    fileFlushKb: read.number("fileFlushMinSizeKb") ?? 0,
    discoveryAddress: read.text("discoveryAddress"),
    plaintext: read.text("controlPlaneAuthPolicy") === "NONE",
    serviceCluster: read.text("serviceCluster"),
    tracingServiceName: read.text("tracingServiceName"),
    interceptionMode: read.text("interceptionMode"),
    binaryPath: read.text("binaryPath"),
    customConfigFile: read.text("customConfigFile"),
    nodeMetadata: metadataIn(given.proxyMetadata),
  };
}

/** By Istio's rule: field by field, and the entries of `proxyMetadata` one by one. */
function merged(below: Given, above: Given): Given {
  const isMap = (value: StructValue | undefined): boolean => typeof value === "object" && value !== null && !Array.isArray(value);
  const both = isMap(below.proxyMetadata) && isMap(above.proxyMetadata);
  return {
    ...below,
    ...above,
    ...(both && { proxyMetadata: { ...(below.proxyMetadata as Given), ...(above.proxyMetadata as Given) } }),
  };
}

function metadataIn(variables: StructValue | undefined): Readonly<Record<string, string>> {
  if (typeof variables !== "object" || variables === null || Array.isArray(variables)) return {};
  const entries = Object.entries(variables).filter(([name, value]) => name.startsWith("ISTIO_META_") && value !== null);
  return Object.fromEntries(entries.map(([name, value]) => [name, String(value)]));
}

async function parse(text: string): Promise<Given> {
  if (text.trim() === "") return {};
  try {
    const value: unknown = await parseYaml(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("it is not an object");
    return value as Record<string, StructValue>;
  } catch (error) {
    throw new EdgeError("usage", `PROXY_CONFIG cannot be read: ${firstLineOf(error)}`, { hint: "give it as YAML or JSON" });
  }
}

/** Readers of YAML show the place below what they say. */
const firstLineOf = (error: unknown): string => messageOf(error).split("\n", 1).join();

/** Reads YAML. Injection writes JSON: the reader of YAML is loaded only for what is none. */
export async function parseYaml(text: string): Promise<unknown> {
  if (text.trimStart().startsWith("{")) {
    try {
      return JSON.parse(text);
    } catch {
      // YAML in flow style looks alike.
    }
  }
  return (await import("js-yaml")).load(text);
}

interface Reader {
  text(name: string): string;
  number(name: string): number | undefined;
  duration(name: string): number | undefined;
}

function reader(given: Readonly<Record<string, StructValue>>): Reader {
  const wrong = (name: string, want: string): EdgeError =>
    new EdgeError("usage", `${name} of PROXY_CONFIG, or of the mesh's file, is not ${want}`);
  return {
    text(name) {
      const value = given[name] ?? "";
      if (typeof value !== "string") throw wrong(name, "a text");
      return value;
    },
    number(name) {
      const value = given[name];
      if (value === undefined || value === null) return undefined;
      const number = typeof value === "string" ? Number(value) : value;
      if (typeof number !== "number" || !Number.isInteger(number) || number < 0) throw wrong(name, "a whole number");
      return number;
    },
    duration(name) {
      const value = given[name];
      if (value === undefined || value === null) return undefined;
      const ms = typeof value === "string" ? durationMs(value) : undefined;
      if (ms === undefined) throw wrong(name, "a duration such as 5s");
      return ms;
    },
  };
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** A duration as Go writes it, in milliseconds; undefined where it is none. */
export function durationMs(text: string): number | undefined {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/gy)];
  const length = parts.reduce((sum, [part]) => sum + part.length, 0);
  if (parts.length === 0 || length !== text.length) return undefined;
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * (UNIT_MS[unit ?? ""] ?? 0), 0);
}
