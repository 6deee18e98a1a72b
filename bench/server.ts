import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { freePort } from "../test/support/ports.ts";
import { cpuMs, memoryMb } from "./process-usage.ts";

const ROOT = join(import.meta.dirname, "..");
const READY_TIMEOUT_MS = 180_000;
const POLL_MS = 10;

/** What the control plane itself says of a change, in its log. */
export interface AppliedChange {
  /** From the push to the last acknowledgement. */
  readonly ms: number;
  readonly proxies: number;
}

/** The program as people run it, on ports of its own. */
export interface MeasuredServer {
  readonly pid: number;
  readonly grpcPort: number;
  /** xDS and CA over TLS. */
  readonly securePort: number;
  /** Answers 200 when it serves. */
  readonly readyUrl: string;
  readonly metricsUrl: string;
  /** Where it serves, as variables for one that is to take its place. */
  readonly addresses: Readonly<Record<string, string>>;
  /** From the start of the process to the first good answer of /ready. */
  readonly readyMs: number;
  /** CPU time and memory at that moment. */
  readonly atReady: { readonly cpuMs: number; readonly rssMb: number; readonly peakMb: number };
  /** Changes logged since the last call. */
  takeChanges(): readonly AppliedChange[];
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Without what has Node read another hundred certificates beside each start, which shells of some machines have. */
function shellEnv(): NodeJS.ProcessEnv {
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;
  return env;
}

/** Addresses by the variables that set them: those that are given, the others on free ports. */
async function addressesBy(given: Readonly<Record<string, string>>): Promise<Readonly<Record<string, string>>> {
  const addresses: Record<string, string> = {};
  for (const name of ["GRPC_ADDR", "SECURE_GRPC_ADDR", "HTTP_ADDR", "MONITORING_ADDR", "HTTPS_ADDR"])
    addresses[name] = given[name] ?? `127.0.0.1:${await freePort()}`;
  return addresses;
}

/**
 * Starts `bin/istiod` in a base directory and waits until it is ready. With the `addresses` of an earlier one in `env` it takes its place: its proxies find it, and
 * what depends on its settings is as it was.
 */
export async function startServer(home: string, env: Readonly<Record<string, string>> = {}): Promise<MeasuredServer> {
  const addresses = await addressesBy(env);
  const portOf = (name: string): number => Number(addresses[name]?.split(":")[1]);
  const [grpcPort, securePort, httpPort] = [portOf("GRPC_ADDR"), portOf("SECURE_GRPC_ADDR"), portOf("HTTP_ADDR")];
  const own = { ...addresses, ISTIO_HOME: home, KUBECONFIG: join(home, "none"), ISTIO_LOG_AS_JSON: "true" };
  const start = systemClock.monotonic();
  const child = spawn(join(ROOT, "bin/istiod"), [], {
    env: { ...shellEnv(), ...own, ...env },
    cwd: home,
    stdio: ["ignore", "ignore", "pipe"],
  });
  const log = followLog(child);
  const pid = child.pid ?? 0;
  try {
    while (!(await isReady(httpPort))) {
      if (child.exitCode !== null || child.signalCode !== null) throw new Error(`istiod ended before it was ready: ${log.text()}`);
      if (systemClock.monotonic() - start > READY_TIMEOUT_MS)
        throw new Error(`istiod is not ready after ${READY_TIMEOUT_MS} ms: ${log.text()}`);
      await systemClock.sleep(POLL_MS);
    }
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
  const readyMs = systemClock.monotonic() - start;
  const { rss, peak } = memoryMb(pid);
  return {
    pid,
    grpcPort,
    securePort,
    readyUrl: `http://127.0.0.1:${httpPort}/ready`,
    metricsUrl: `http://127.0.0.1:${portOf("MONITORING_ADDR")}/metrics`,
    addresses,
    readyMs,
    atReady: { cpuMs: cpuMs(pid), rssMb: rss, peakMb: peak },
    takeChanges: log.takeChanges,
    stop: (signal) => stop(child, signal),
  };
}

const RECEIPTS_MS = 30_000;
/** Longer than one writing of them waits for the next: then those of all proxies are there. */
const UNTOUCHED_MS = 7_000;

/** Resolves when a server that has nothing else to do has kept what its proxies are to hold (`src/xds/receipts.ts`). */
export async function receiptsKept(home: string): Promise<void> {
  const file = join(home, "var/lib/istio/receipts");
  const start = systemClock.monotonic();
  const written = (): number => (existsSync(file) ? statSync(file).mtimeMs : 0);
  for (let [last, since] = [written(), start]; last === 0 || systemClock.monotonic() - since < UNTOUCHED_MS; ) {
    if (systemClock.monotonic() - start > RECEIPTS_MS) throw new Error(`${file} is not there after ${RECEIPTS_MS} ms`);
    await systemClock.sleep(POLL_MS);
    if (written() !== last) [last, since] = [written(), systemClock.monotonic()];
  }
}

function isReady(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get({ host: "127.0.0.1", port, path: "/ready", agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on("error", () => resolve(false));
  });
}

function followLog(child: ChildProcess): { readonly text: () => string; readonly takeChanges: () => readonly AppliedChange[] } {
  let text = "";
  let rest = "";
  let changes: AppliedChange[] = [];
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    text = `${text}${chunk}`.slice(-10_000);
    const lines = `${rest}${chunk}`.split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const change = readChange(line);
      if (change !== undefined) changes.push(change);
    }
  });
  return {
    text: () => text,
    takeChanges() {
      const taken = changes;
      changes = [];
      return taken;
    },
  };
}

function readChange(line: string): AppliedChange | undefined {
  if (!line.includes("change applied")) return undefined;
  const { ms, proxies } = JSON.parse(line) as { readonly ms?: number; readonly proxies?: number };
  return ms === undefined || proxies === undefined ? undefined : { ms, proxies };
}

function stop(child: ChildProcess, signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once("exit", () => resolve());
    child.kill(signal);
  });
}
