import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { tempDir } from "./cleanup.ts";
import { freePort } from "./ports.ts";
import { programArgs } from "./program-args.ts";
import { eventually } from "./wait.ts";

/** A real control plane process on ports of its own, with a base directory of its own. */
export interface Istiod {
  readonly home: string;
  readonly grpcPort: number;
  /** xDS and CA over TLS. */
  readonly securePort: number;
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
  /** Asks for a page with the debug token. */
  debug(path: string, init?: RequestInit): Promise<Response>;
  /** Sum of the samples of one metric whose labels include `labels` (as they are written, e.g. `type="cds"`); 0 when there is none. */
  metric(name: string, labels?: string): Promise<number>;
  /** Reads nothing more of what it says, as when a collector of logs ends. */
  hangUp(): void;
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  /** Starts it again on the same ports and directory. */
  start(): Promise<void>;
}

export interface IstiodOptions {
  readonly program?: "istiod" | "istiod-vm";
  /** Files below etc/istio, e.g. `conf/shop.yaml` or `mesh.yaml`. */
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** A cgroup that it runs in. */
  readonly cgroup?: string;
  /** Its base directory, where there is one already. */
  readonly home?: string;
  /** Called as soon as the process runs, with what it wrote to stderr so far. */
  readonly spawned?: (log: () => string) => void;
  /** Whether there is an etc/istio/conf to begin with (default). */
  readonly confDir?: boolean;
  /** Where its ports come from: `freePort` by default. */
  readonly findPort?: () => Promise<number>;
}

/** How often a control plane may find that one of its ports was taken between being found and being used. */
const MOST_STARTS = 3;

/** Starts a control plane and resolves when it is ready. Where one of the ports it was given has been taken meanwhile, it is started on others. */
export async function startIstiod(options: IstiodOptions = {}): Promise<Istiod> {
  const home = await prepareHome(options);
  for (let starts = 1; ; starts++) {
    const site = { home, ...(await findPorts(options)) };
    const program = programOf(options, site);
    onTestFinished(async () => void (await program.stop("SIGKILL")));
    const start = (): Promise<void> => untilReady(program, { site, spawned: options.spawned });
    try {
      await start();
      return istiodAt(site, program, start);
    } catch (error) {
      if (starts === MOST_STARTS || !program.log().includes("is taken by another program")) throw error;
    }
  }
}

async function untilReady(
  program: Program,
  { site, spawned }: { readonly site: Site; readonly spawned: IstiodOptions["spawned"] },
): Promise<void> {
  const before = program.said().length;
  const child = program.spawn();
  let ended = false;
  child.once("close", () => {
    ended = true;
  });
  spawned?.(program.log);
  // It says so itself: who answers on the port may be whoever took it.
  const isReady = async (): Promise<boolean> =>
    program.said().slice(before).includes(" is ready: ") && (await fetch(`http://127.0.0.1:${site.httpPort}/ready`)).ok;
  await eventually("istiod is ready or has ended", async () => ended || (await isReady()));
  if (ended) throw new Error(`istiod ended with ${child.exitCode ?? child.signalCode}: ${program.log()}`);
}

function istiodAt({ home, grpcPort, securePort, httpPort }: Site, program: Program, start: () => Promise<void>): Istiod {
  return {
    home,
    grpcPort,
    securePort,
    httpPort,
    pid: program.pid,
    log: program.log,
    said: program.said,
    write: (file, text) => writeBelow(home, file, text),
    remove: (file) => rm(join(home, "etc/istio", file), { recursive: true }),
    hangUp: program.hangUp,
    stop: program.stop,
    start,
    async debug(path, init) {
      const token = (await readFile(join(home, "var/lib/istio/debug.token"), "utf8")).trim();
      return fetch(`http://127.0.0.1:${httpPort}${path}`, { ...init, headers: { authorization: `Bearer ${token}`, ...init?.headers } });
    },
    metric: async (name, labels = "") => sumSamples(await (await fetch(`http://127.0.0.1:${httpPort}/metrics`)).text(), name, labels),
  };
}

/** Runs a control plane that is expected to end by itself. */
export async function runIstiod(
  options: IstiodOptions = {},
): Promise<{ readonly status: number | null; readonly log: string; readonly said: string }> {
  const program = programOf(options, { home: await prepareHome(options), ...(await findPorts(options)) });
  const child = program.spawn();
  onTestFinished(async () => void (await program.stop("SIGKILL")));
  const status = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { status, log: program.log(), said: program.said() };
}

interface Ports {
  readonly grpcPort: number;
  readonly securePort: number;
  readonly httpPort: number;
  readonly monitoringPort: number;
}

interface Site extends Ports {
  readonly home: string;
}

async function findPorts({ findPort = freePort }: IstiodOptions): Promise<Ports> {
  return { grpcPort: await findPort(), securePort: await findPort(), httpPort: await findPort(), monitoringPort: await findPort() };
}

async function prepareHome({ files = {}, confDir = true, home }: IstiodOptions): Promise<string> {
  const directory = home ?? (await tempDir());
  if (confDir) await mkdir(join(directory, "etc/istio/conf"), { recursive: true });
  for (const [file, text] of Object.entries(files)) await writeBelow(directory, file, text);
  return directory;
}

async function writeBelow(home: string, file: string, text: string): Promise<void> {
  const path = join(home, "etc/istio", file);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(`${path}.tmp~`, text);
  await rename(`${path}.tmp~`, path);
}

interface Program {
  spawn(): ChildProcess;
  hangUp(): void;
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  readonly pid: () => number;
  readonly log: () => string;
  readonly said: () => string;
}

function programOf(options: IstiodOptions, { home, grpcPort, securePort, httpPort, monitoringPort }: Site): Program {
  const defaults = {
    GRPC_ADDR: `127.0.0.1:${grpcPort}`,
    SECURE_GRPC_ADDR: `127.0.0.1:${securePort}`,
    HTTP_ADDR: `127.0.0.1:${httpPort}`,
    MONITORING_ADDR: `127.0.0.1:${monitoringPort}`,
    HTTPS_ADDR: "", // Webhooks are off unless a test gives them a port.
    GRPC_KEEPALIVE_TIMEOUT: "100s", // All clients of a test are one process, which on a busy machine may not come to answer for a while.
  };
  const env = { ...process.env, ISTIO_HOME: home, ...defaults, KUBECONFIG: join(home, "none"), ...options.env };
  const dist = join(import.meta.dirname, "../../dist");
  const args = programArgs(options.program ?? "istiod", { dist, nodeOptions: options.env?.NODE_OPTIONS });
  const written = { stdout: "", stderr: "" };
  let child: ChildProcess | undefined;
  return {
    spawn() {
      const [command = "", ...rest] = [...(options.cgroup === undefined ? [] : inCgroup(options.cgroup)), process.execPath, ...args];
      const started = spawn(command, rest, { env, cwd: home, stdio: ["ignore", "pipe", "pipe"] });
      for (const name of ["stdout", "stderr"] as const) {
        started[name].on("data", (chunk: Buffer) => {
          written[name] += chunk.toString();
        });
      }
      child = started;
      return started;
    },
    stop: (signal = "SIGTERM") =>
      new Promise((resolve) => {
        if (child === undefined || child.exitCode !== null || child.signalCode !== null) return resolve(child?.exitCode ?? null);
        child.once("exit", (code) => resolve(code));
        child.kill(signal);
      }),
    hangUp() {
      child?.stdout?.destroy();
      child?.stderr?.destroy();
    },
    pid: () => child?.pid ?? 0,
    log: () => written.stderr,
    said: () => written.stdout,
  };
}

/** What runs a command in a cgroup, as the same process. */
const inCgroup = (dir: string): readonly string[] => ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', dir];

function sumSamples(text: string, name: string, labels: string): number {
  const samples = text.split("\n").filter((line) => (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) && line.includes(labels));
  return samples.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}
