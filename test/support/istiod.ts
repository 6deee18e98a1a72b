import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { tempDir } from "./cleanup.ts";
import { freePort } from "./ports.ts";
import { eventually } from "./wait.ts";

/** A real control plane process on ports of its own, with a base directory of its own. */
export interface Istiod {
  readonly home: string;
  readonly grpcPort: number;
  readonly httpPort: number;
  readonly pid: () => number;
  /** Everything it wrote to stderr. */
  readonly log: () => string;
  /** Everything it wrote to stdout. */
  readonly said: () => string;
  /** Writes a configuration file as editors do: a new file renamed over the old one. */
  write(file: string, text: string): Promise<void>;
  /** Removes a configuration file or directory. */
  remove(file: string): Promise<void>;
  debug(path: string): Promise<Response>;
  /** Sum of the samples of one metric whose labels include `labels` (as they are written, e.g. `type="cds"`); 0 when there is none. */
  metric(name: string, labels?: string): Promise<number>;
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  /** Starts it again on the same ports and directory. */
  start(): Promise<void>;
}

export interface IstiodOptions {
  readonly program?: "istiod" | "istiod-vm";
  /** Files below etc/istio, e.g. `conf/shop.yaml` or `mesh.yaml`. */
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
}

export async function startIstiod(options: IstiodOptions = {}): Promise<Istiod> {
  const home = await tempDir();
  const [grpcPort, httpPort, monitoringPort] = [await freePort(), await freePort(), await freePort()];
  const env = {
    ...process.env,
    ISTIO_HOME: home,
    GRPC_ADDR: `127.0.0.1:${grpcPort}`,
    HTTP_ADDR: `127.0.0.1:${httpPort}`,
    MONITORING_ADDR: `127.0.0.1:${monitoringPort}`,
    KUBECONFIG: join(home, "none"),
    ...options.env,
  };
  let child: ChildProcess | undefined;
  let log = "";
  let said = "";
  const write = async (file: string, text: string): Promise<void> => {
    const path = join(home, "etc/istio", file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(`${path}.tmp~`, text);
    await rename(`${path}.tmp~`, path);
  };
  const stop = (signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> =>
    new Promise((resolve) => {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return resolve(child?.exitCode ?? null);
      child.once("exit", (code) => resolve(code));
      child.kill(signal);
    });
  const start = async (): Promise<void> => {
    child = spawn(process.execPath, [join(import.meta.dirname, "../../dist", `${options.program ?? "istiod"}.mjs`)], {
      env,
      cwd: home,
      stdio: ["ignore", "pipe", "pipe"],
    });
    child.stderr?.on("data", (chunk: Buffer) => {
      log += chunk.toString();
    });
    child.stdout?.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
    await eventually("istiod is ready", async () => {
      if (child?.exitCode !== null) throw new Error(`istiod ended with ${child?.exitCode}: ${log}`);
      return (await fetch(`http://127.0.0.1:${httpPort}/ready`)).ok;
    });
  };
  for (const [file, text] of Object.entries(options.files ?? {})) await write(file, text);
  await mkdir(join(home, "etc/istio/conf"), { recursive: true });
  onTestFinished(async () => void (await stop("SIGKILL")));
  await start();
  return {
    home,
    grpcPort,
    httpPort,
    pid: () => child?.pid ?? 0,
    log: () => log,
    said: () => said,
    write,
    remove: (file) => rm(join(home, "etc/istio", file), { recursive: true }),
    stop,
    start,
    async debug(path) {
      const token = (await readFile(join(home, "var/lib/istio/debug.token"), "utf8")).trim();
      return fetch(`http://127.0.0.1:${httpPort}${path}`, { headers: { authorization: `Bearer ${token}` } });
    },
    metric: async (name, labels = "") => sumSamples(await (await fetch(`http://127.0.0.1:${httpPort}/metrics`)).text(), name, labels),
  };
}

function sumSamples(text: string, name: string, labels: string): number {
  const samples = text.split("\n").filter((line) => (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) && line.includes(labels));
  return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}
