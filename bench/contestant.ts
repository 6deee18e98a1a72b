import { spawn } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { freePort } from "../test/support/ports.ts";
import { listeningProcess } from "./listening-process.ts";
import { cpuMs, memoryMb } from "./process-usage.ts";
import { startServer } from "./server.ts";

/** A control plane that serves a scene, whoever made it. */
export interface Contestant {
  readonly grpcPort: number;
  /** Where it serves over TLS, if it does. */
  readonly securePort: number;
  readonly readyUrl: string;
  /** Holds the id of its process, also after a restart. */
  readonly pidFile: string;
  readonly readyMs: number;
  readonly cpuAtReadyMs: number;
  readonly rssAtReadyMb: number;
  stop(): Promise<void>;
}

const READY_TIMEOUT_MS = 180_000;
const POLL_MS = 10;
const END_MS = 3_000;

/** Ours, in a base directory whose objects are those of the scene, where there is one. */
export async function startOurs(scene: string | undefined, work: string, env: Readonly<Record<string, string>> = {}): Promise<Contestant> {
  const home = join(work, "ours");
  mkdirSync(join(home, "etc/istio"), { recursive: true });
  if (scene !== undefined) symlinkSync(join(scene, "config"), join(home, "etc/istio/conf"));
  const server = await startServer(home, env);
  const pidFile = join(work, "ours.pid");
  writeFileSync(pidFile, String(server.pid));
  return {
    grpcPort: server.grpcPort,
    securePort: server.securePort,
    readyUrl: server.readyUrl,
    pidFile,
    readyMs: server.readyMs,
    cpuAtReadyMs: server.atReady.cpuMs,
    rssAtReadyMb: server.atReady.rssMb,
    async stop() {
      await server.stop();
      endProcess(pidFile);
    },
  };
}

/**
 * Another one, by a command `CMD DIRECTORY PORTBASE` that serves `DIRECTORY/config` in plaintext on PORTBASE+10, answers 200 on PORTBASE+80/ready once
 * it has loaded, stays in the foreground and ends on SIGTERM.
 */
export async function startPeer(command: string, scene: string, work: string): Promise<Contestant> {
  const base = await freeBase();
  const start = systemClock.monotonic();
  const child = spawn(command, [scene, String(base)], { stdio: "ignore" });
  const readyUrl = `http://127.0.0.1:${base + 80}/ready`;
  while (!(await answers(readyUrl))) {
    if (child.exitCode !== null) throw new Error(`${command} ended before it was ready`);
    if (systemClock.monotonic() - start > READY_TIMEOUT_MS) throw new Error(`${command} is not ready after ${READY_TIMEOUT_MS} ms`);
    await systemClock.sleep(POLL_MS);
  }
  const readyMs = systemClock.monotonic() - start;
  const pid = listeningProcess(base + 10);
  if (pid === undefined) throw new Error(`nobody listens on ${base + 10}, where ${command} has to serve`);
  const pidFile = join(work, "peer.pid");
  writeFileSync(pidFile, String(pid));
  return {
    grpcPort: base + 10,
    securePort: base + 12,
    readyUrl,
    pidFile,
    readyMs,
    cpuAtReadyMs: cpuMs(pid),
    rssAtReadyMb: memoryMb(pid).rss,
    async stop() {
      child.kill("SIGTERM");
      await Promise.race([new Promise((resolve) => child.once("exit", resolve)), systemClock.sleep(END_MS)]);
      endProcess(pidFile);
    },
  };
}

/** A hundred ports below those that the system gives to clients. */
async function freeBase(): Promise<number> {
  const port = await freePort();
  return 20_000 + (port % 100) * 100;
}

function endProcess(pidFile: string): void {
  try {
    process.kill(Number(readFileSync(pidFile, "utf8")), "SIGKILL");
  } catch {
    // It has ended already.
  }
}

function answers(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on("error", () => resolve(false));
  });
}
