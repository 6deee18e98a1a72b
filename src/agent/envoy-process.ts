import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { chown, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { EdgeError, messageOf } from "../base/errors.ts";
import { askAdmin } from "./admin-client.ts";
import { passOutput } from "./passed-output.ts";

export interface EnvoyOptions {
  readonly binary: string;
  /** Directory for the bootstrap file and the log. */
  readonly workDir: string;
  readonly name: string;
  /** Bootstrap as JSON text, as a serialized message, or where one is that is run as it is. */
  readonly bootstrap: string | Uint8Array | { readonly file: string };
  readonly adminPort: number;
  readonly clock: Clock;
  readonly logLevel?: string;
  /** Directory that relative paths in its configuration are below; without one, that of this process. */
  readonly runIn?: string;
  /** Further flags of the command line. */
  readonly flags?: readonly string[];
  /** How long it takes to drain what it is asked to. */
  readonly drainSeconds?: number;
  /** What it writes goes where ours goes, access logs too, instead of into a file. */
  readonly passOutput?: boolean;
  /** How to run it as somebody or somewhere else: the words of a command that runs another, and who must be able to read its files. */
  readonly launcher?: { readonly words: readonly string[]; readonly user: number };
  /** How to reach its admin interface where this process cannot: gives the text at a URL. */
  readonly fetchText?: (url: string) => Promise<string>;
}

/** A running Envoy. `stop` ends it and waits. */
export interface EnvoyProcess {
  readonly adminPort: number;
  readonly logFile: string;
  /** Resolves when Envoy has its first configuration, rejects with the tail of its log when it exits or the time is over. */
  ready(timeoutMs: number): Promise<void>;
  admin(path: string): Promise<string>;
  stop(): Promise<void>;
  readonly exited: Promise<number | null>;
  /** What killed it, where something did: then there is no status. */
  readonly killedBy: NodeJS.Signals | null;
  readonly pid: number | undefined;
}

/** Starts one Envoy. It shares nothing with other Envoys on the machine: no hot restart, its own log. Throws `EdgeError` where it cannot be run at all. */
export async function startEnvoy(options: EnvoyOptions): Promise<EnvoyProcess> {
  const file = await bootstrapIn(options);
  const logFile = join(options.workDir, `${options.name}.log`);
  const drain = ["--drain-time-s", String(options.drainSeconds ?? 1)];
  const flags = ["-c", file, "--disable-hot-restart", "-l", options.logLevel ?? "warning", ...drain, ...(options.flags ?? [])];
  const [command = options.binary, ...words] = [...(options.launcher?.words ?? []), options.binary, ...flags];
  const cwd = options.runIn;
  const child =
    options.passOutput === true
      ? await spawnPassing([command, ...words], options.workDir, cwd)
      : spawnLogged([command, ...words], logFile, cwd);
  const exited = new Promise<number | null>((resolve) => child.once("exit", resolve).once("error", () => resolve(null)));
  const cannotRun = await new Promise<Error | undefined>((resolve) => child.once("spawn", () => resolve(undefined)).once("error", resolve));
  if (cannotRun !== undefined) throw new EdgeError("envoy_missing", `Envoy cannot be run: ${cannotRun.message}`, { cause: cannotRun });
  const fetchText = options.fetchText;
  const admin = (path: string): Promise<string> =>
    fetchText === undefined ? askAdmin(options.adminPort, path) : fetchText(`http://127.0.0.1:${options.adminPort}${path}`);
  return {
    adminPort: options.adminPort,
    logFile,
    exited,
    get killedBy() {
      return child.signalCode;
    },
    pid: child.pid,
    admin,
    ready: (timeoutMs) => waitReady({ child, admin, logFile, clock: options.clock, timeoutMs }),
    async stop() {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
      const kill = options.clock.after(5_000, () => child.kill("SIGKILL"));
      await exited;
      kill();
    },
  };
}

async function bootstrapIn({ bootstrap, workDir, name, launcher }: EnvoyOptions): Promise<string> {
  if (typeof bootstrap === "object" && "file" in bootstrap) {
    // Under a name of ours, by which the next agent knows the process again.
    const link = join(workDir, `${name}.bootstrap${extname(bootstrap.file)}`);
    await rm(link, { force: true });
    await symlink(bootstrap.file, link);
    return link;
  }
  const file = join(workDir, `${name}.bootstrap.${typeof bootstrap === "string" ? "json" : "pb"}`);
  await writeFile(file, bootstrap, { mode: 0o600 }).catch((error: unknown) => {
    throw new EdgeError("state_unwritable", `Envoy's bootstrap ${file} cannot be written: ${messageOf(error)}`, {
      cause: error,
      hint: "let this user write there, and make room if its disk is full",
    });
  });
  if (launcher !== undefined) await chown(file, launcher.user, launcher.user);
  return file;
}

async function spawnPassing([command = "", ...words]: readonly string[], workDir: string, cwd: string | undefined): Promise<ChildProcess> {
  const { stdout, stderr, release } = await passOutput(workDir);
  const child = spawn(command, words, { stdio: ["ignore", stdout, stderr], cwd });
  release();
  return child;
}

function spawnLogged([command = "", ...words]: readonly string[], logFile: string, cwd: string | undefined): ChildProcess {
  const log = openSync(logFile, "a", 0o600);
  const child = spawn(command, words, { stdio: ["ignore", log, log], cwd });
  closeSync(log);
  return child;
}

interface Waiting {
  readonly child: ChildProcess;
  readonly admin: (path: string) => Promise<string>;
  readonly logFile: string;
  readonly clock: Clock;
  readonly timeoutMs: number;
}

async function waitReady({ child, admin, logFile, clock, timeoutMs }: Waiting): Promise<void> {
  const deadline = clock.monotonic() + timeoutMs;
  while (clock.monotonic() < deadline) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new EdgeError("envoy_missing", `Envoy ended at start: ${await tail(logFile)}`);
    const state = await admin("/ready").catch(() => "");
    if (state.startsWith("LIVE")) return;
    await clock.sleep(50);
  }
  throw new EdgeError("envoy_missing", `Envoy was not ready after ${timeoutMs} ms: ${await tail(logFile)}`);
}

async function tail(file: string): Promise<string> {
  return (await readFile(file, "utf8").catch(() => "")).split("\n").slice(-12).join("\n");
}
