import { parseArgs } from "node:util";
import { EdgeError, firstSentenceOf } from "../base/errors.ts";
import type { AgentProxyType } from "./node-identity.ts";

/** How one flag of Istio's agent is understood: as variables of ours, or not at all. */
interface ProxyFlag {
  readonly type?: "boolean";
  /** The variable it stands for, or what several stand for. */
  readonly env?: string | ((given: string) => Variables);
}

type Variables = Readonly<Record<string, string>>;

/** Flags that injection writes, or that a user of Istio's `pilot-agent proxy` may have added. Those without a variable are accepted and mean nothing here. */
const FLAGS: Readonly<Record<string, ProxyFlag>> = {
  domain: { env: "PROXY_DOMAIN" },
  serviceCluster: { env: "PROXY_SERVICE_CLUSTER" },
  proxyComponentLogLevel: { env: "PROXY_COMPONENT_LOG_LEVEL" },
  proxyLogLevel: { env: envoyLevels },
  log_output_level: { env: (given) => ({ ISTIO_LOG_LEVEL: defaultLevel(given) }) },
  log_as_json: { type: "boolean", env: "ISTIO_LOG_AS_JSON" },
  outlierLogPath: { env: "ISTIO_META_OUTLIER_LOG_PATH" },
  concurrency: { env: "PROXY_CONCURRENCY" },
  meshConfig: { env: "PROXY_MESH_CONFIG" },
  stsPort: {},
  tokenManagerPlugin: {},
  templateFile: {},
  profiling: { type: "boolean" },
  log_target: {},
  log_caller: {},
  log_stacktrace_level: {},
  log_rotate: {},
  log_rotate_max_age: {},
  log_rotate_max_backups: {},
  log_rotate_max_size: {},
  vklog: {},
};

/** Flags that are taken and change nothing, as docs/agent.md lists them. */
export const FLAGS_WITHOUT_EFFECT: readonly string[] = Object.keys(FLAGS).filter((name) => FLAGS[name]?.env === undefined);

const TYPES: readonly AgentProxyType[] = ["sidecar", "router", "waypoint"];
const isType = (word: string): word is AgentProxyType => (TYPES as readonly string[]).includes(word);

/** What the words behind `istio-agent proxy` say. */
export interface ProxyWords {
  readonly type: AgentProxyType;
  /** The variables that flags stand for. */
  readonly variables: Variables;
}

/** Reads flags and, before, between or behind them, what the proxy is. Throws `EdgeError` for what nobody knows. */
export function readProxyFlags(args: readonly string[]): ProxyWords {
  const options = Object.fromEntries(Object.entries(FLAGS).map(([name, { type }]) => [name, { type: type ?? ("string" as const) }]));
  const { values, positionals } = parsed(
    args.map(withoutTrue).filter((word) => word !== ""),
    options,
  );
  const [type = "sidecar", second] = positionals[0] === "proxy" ? positionals.slice(1) : positionals;
  if (!isType(type)) throw unknown(type);
  if (second !== undefined) throw unknown(second);
  // In the order of the table: single levels in --proxyLogLevel stand over those in the older flag.
  const given = Object.entries(FLAGS).flatMap(([name, { env }]) => {
    const value = String(values[name] ?? "");
    if (env === undefined || value === "") return [];
    return Object.entries(typeof env === "string" ? { [env]: value } : env(value));
  });
  return { type, variables: Object.fromEntries(given) };
}

function parsed(args: string[], options: Readonly<Record<string, { readonly type: "string" | "boolean" }>>) {
  try {
    return parseArgs({ args, options, strict: true, allowPositionals: true });
  } catch (error) {
    throw new EdgeError("usage", firstSentenceOf(error), { hint: "see istio-agent --help" });
  }
}

const unknown = (word: string): EdgeError =>
  new EdgeError("usage", `${JSON.stringify(word)} is not understood`, { hint: "see istio-agent --help" });

/** Go writes switches with a value too; one that is off is as if it were not there. */
function withoutTrue(word: string): string {
  const [, flag = "", name = "", value = ""] = /^(--(\w+))=(.*)$/.exec(word) ?? [];
  if (FLAGS[name]?.type !== "boolean") return word;
  return /^(1|t|true)$/i.test(value) ? flag : "";
}

/** `info,misc:error` is a level for all and levels of single parts, which are flags of their own to Envoy. */
function envoyLevels(given: string): Variables {
  const words = given.split(",").map((word) => word.trim());
  const parts = words.filter((word) => word.includes(":"));
  const level = words.find((word) => word !== "" && !word.includes(":"));
  return {
    ...(level !== undefined && { PROXY_LOG_LEVEL: level === "warn" ? "warning" : level }),
    ...(parts.length > 0 && { PROXY_COMPONENT_LOG_LEVEL: parts.join(",") }),
  };
}

const LEVELS: Readonly<Record<string, string>> = {
  none: "error",
  fatal: "error",
  error: "error",
  warn: "warn",
  info: "info",
  debug: "debug",
};

/** Of Istio's levels by scope (`default:info,xds:debug`) the one that holds for all others. */
function defaultLevel(given: string): string {
  const scopes = given.split(",").map((part) => part.trim());
  const found = scopes.find((part) => part.startsWith("default:") || part.startsWith("all:") || !part.includes(":")) ?? "info";
  return LEVELS[found.slice(found.indexOf(":") + 1)] ?? "info";
}
