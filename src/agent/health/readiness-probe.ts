import { EdgeError, messageOf } from "../../base/errors.ts";
import { type Fields, type ProbeMethod, readProbeMethod, recordOf, textOf } from "../status/probe-method.ts";

/** How the agent finds out whether the workload beside it is well: `readinessProbe` of ProxyConfig, which is `probe` of its WorkloadGroup. */
export interface ReadinessProbe {
  readonly initialDelayMs: number;
  readonly timeoutMs: number;
  readonly periodMs: number;
  /** Answers of one sort in a row that it takes to be believed. */
  readonly successes: number;
  readonly failures: number;
  readonly method: ProbeMethod | { readonly kind: "exec"; readonly command: readonly string[] };
  /** Where the workload is asked, if not at its own address. */
  readonly host: string | undefined;
}

/** Reads a probe; times and thresholds that are not given are Istio's. Throws `EdgeError` that says what is wrong with it. */
export function readReadinessProbe(value: unknown): ReadinessProbe | undefined {
  const fields = recordOf(value);
  if (fields === undefined) return undefined;
  try {
    const count = (name: string, otherwise: number): number => positive(name, fields[name]) || otherwise;
    const host = textOf(recordOf(fields.httpGet)?.host) || textOf(recordOf(fields.tcpSocket)?.host);
    return {
      initialDelayMs: count("initialDelaySeconds", 0) * 1_000,
      timeoutMs: count("timeoutSeconds", 1) * 1_000,
      periodMs: count("periodSeconds", 10) * 1_000,
      successes: count("successThreshold", 1),
      failures: count("failureThreshold", 1),
      method: methodOf(fields),
      host: host === "" ? undefined : host,
    };
  } catch (error) {
    throw new EdgeError("usage", `readinessProbe of PROXY_CONFIG cannot be used: ${messageOf(error)}`, {
      hint: "correct `probe` of the WorkloadGroup and write the machine's join bundle again",
    });
  }
}

function methodOf(fields: Fields): ReadinessProbe["method"] {
  const exec = recordOf(fields.exec);
  if (exec === undefined) return readProbeMethod("the probe", fields);
  const command = Array.isArray(exec.command) ? exec.command.filter((word) => typeof word === "string") : [];
  if (command.length === 0 || command[0] === "") throw new Error("exec names no command");
  return { kind: "exec", command };
}

function positive(name: string, value: unknown): number {
  if (value === undefined || value === null) return 0;
  if (typeof value === "number" && Number.isInteger(value) && value >= 0) return value;
  throw new Error(`${name} is not a whole number`);
}
