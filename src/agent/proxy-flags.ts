import { parseArgs } from "node:util";
import { EdgeError, messageOf } from "../base/errors.ts";

/** How one flag of Istio's agent is understood: as a variable of ours, or not at all. */
interface ProxyFlag {
  readonly type?: "boolean";
  /** The variable it stands for, and its value there. */
  readonly env?: readonly [name: string, value?: (given: string) => string];
}

/** Flags that injection writes, or that a user of Istio's `pilot-agent proxy` may have added. Those without a variable are accepted and mean nothing here. */
const FLAGS: Readonly<Record<string, ProxyFlag>> = {
  domain: {},
  proxyLogLevel: { env: ["PROXY_LOG_LEVEL", (level) => (level === "warn" ? "warning" : level)] },
  proxyComponentLogLevel: { env: ["PROXY_COMPONENT_LOG_LEVEL"] },
  log_output_level: { env: ["ISTIO_LOG_LEVEL", defaultLevel] },
  log_as_json: { type: "boolean", env: ["ISTIO_LOG_AS_JSON", () => "true"] },
  outlierLogPath: { env: ["ISTIO_META_OUTLIER_LOG_PATH"] },
  concurrency: { env: ["ISTIO_CPU_LIMIT"] },
  stsPort: {},
  tokenManagerPlugin: {},
  templateFile: {},
  meshConfig: {},
  profiling: { type: "boolean" },
};

/** Reads what stands behind `proxy sidecar`: the variables it stands for. Throws `EdgeError` for a flag that nobody knows. */
export function readProxyFlags(args: readonly string[]): Readonly<Record<string, string>> {
  const options = Object.fromEntries(Object.entries(FLAGS).map(([name, { type }]) => [name, { type: type ?? ("string" as const) }]));
  try {
    const { values } = parseArgs({ args: [...args], options, strict: true, allowPositionals: false });
    return Object.fromEntries(
      Object.entries(values).flatMap(([name, value]) => {
        const [variable, asValue = (given: string) => given] = FLAGS[name]?.env ?? [];
        return variable === undefined || value === "" ? [] : [[variable, asValue(String(value))]];
      }),
    );
  } catch (error) {
    throw new EdgeError("usage", messageOf(error).split("\n")[0] ?? "", { hint: "see istio-agent --help" });
  }
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
