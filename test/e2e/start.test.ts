import { type ChildProcess, spawn } from "node:child_process";
import { cp, mkdir, readdir, readFile, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { tempDir } from "../support/cleanup.ts";
import { freePort } from "../support/ports.ts";
import { eventually } from "../support/wait.ts";

const ROOT = join(import.meta.dirname, "../..");

/** Programs as packages hold them: no sources, nothing to set up. */
async function layout(): Promise<string> {
  const root = await tempDir("start-");
  await mkdir(join(root, "node_modules/.bin"), { recursive: true });
  await mkdir(join(root, "dist"));
  await symlink(process.execPath, join(root, "node_modules/.bin/node"));
  await cp(join(ROOT, "bin"), join(root, "bin"), { recursive: true });
  const files = (await readdir(join(ROOT, "dist"))).filter((name) => !name.endsWith(".map"));
  for (const name of files) await cp(join(ROOT, "dist", name), join(root, "dist", name));
  return root;
}

interface Started {
  readonly child: ChildProcess;
  readonly port: number;
  readonly log: () => string;
}

async function start(root: string, env: Readonly<Record<string, string>> = {}): Promise<Started> {
  const home = await tempDir("start-home-");
  const port = await freePort();
  const child = spawn(join(root, "bin/istiod"), {
    cwd: home,
    env: {
      ...process.env,
      NODE_OPTIONS: "",
      ISTIO_HOME: home,
      KUBECONFIG: join(home, "none"),
      NODE_COMPILE_CACHE: join(home, "compiled"),
      GRPC_ADDR: "",
      SECURE_GRPC_ADDR: "",
      MONITORING_ADDR: "",
      HTTPS_ADDR: "",
      HTTP_ADDR: `127.0.0.1:${port}`,
      ...env,
    },
    stdio: ["ignore", "ignore", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let log = "";
  child.stderr.on("data", (chunk: Buffer) => {
    log += chunk.toString();
  });
  await eventually("istiod is ready", async () => {
    if (child.exitCode !== null) throw new Error(`istiod ended with ${child.exitCode}: ${log}`);
    return (await fetch(`http://127.0.0.1:${port}/ready`)).ok;
  });
  return { child, port, log: () => log };
}

const usesSnapshot = async ({ child }: Started): Promise<boolean> =>
  (await readFile(`/proc/${child.pid}/cmdline`, "utf8")).split("\0").includes("--snapshot-blob");

/** Runs it to its end. */
function run(root: string, args: readonly string[], env = process.env): Promise<{ readonly status: number | null; readonly said: string }> {
  const child = spawn(join(root, "bin/istiod"), args, { env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      said += chunk.toString();
    });
  }
  return new Promise((resolve) => child.once("close", (status) => resolve({ status, said })));
}

describe("bin/istiod", () => {
  it("starts from its snapshot, writes nothing beside itself, and keeps no time of when the snapshot was made", async () => {
    const root = await layout();
    const before = await readdir(root, { recursive: true });
    const began = systemClock.now() / 1000;
    const started = await start(root, { NODE_OPTIONS: "--max-old-space-size=300" });
    expect(await usesSnapshot(started)).toBe(true);
    expect(await readdir(root, { recursive: true })).toEqual(before);
    const metrics = await (await fetch(`http://127.0.0.1:${started.port}/metrics`)).text();
    const startTime = Number(/^process_start_time_seconds (\d+)/m.exec(metrics)?.[1]);
    expect(startTime).toBeGreaterThanOrEqual(Math.floor(began));
    started.child.kill("SIGTERM");
    expect(await new Promise((resolve) => started.child.once("exit", resolve))).toBe(0);
  });

  it("takes and refuses the same words", async () => {
    const root = await layout();
    expect(await run(root, ["--version"])).toMatchObject({ status: 0, said: expect.stringMatching(/^istiod \d/) });
    expect(await run(root, ["--nonsense"])).toMatchObject({ status: 2, said: expect.stringContaining('"--nonsense"') });
  });

  it("says in one sentence what to do where there is no Node", async () => {
    const root = await layout();
    await rm(join(root, "node_modules/.bin/node"));
    expect(await run(root, ["--version"])).toEqual({
      status: 1,
      said: expect.stringMatching(/^istiod: .*node is missing \(unpack .*\)\n$/),
    });
    await mkdir(join(root, "src"));
    const tools = join(root, "tools-alone");
    await mkdir(tools);
    for (const name of ["dirname", "readlink", "find"]) await symlink(join("/usr/bin", name), join(tools, name));
    const bare = await run(root, ["--version"], { PATH: tools });
    expect(bare).toEqual({ status: 1, said: expect.stringMatching(/^istiod: Node.js is not installed \(install version 20 .*\)\n$/) });
  });

  const fallbacks: readonly [about: string, change: (dist: string) => Promise<void>, env?: Readonly<Record<string, string>>][] = [
    ["there is no snapshot", (dist) => rm(join(dist, "istiod.blob"))],
    ["it was made by another Node", (dist) => writeFile(join(dist, "istiod.blob.sizes"), "1\n2\n")],
    ["it is cut off", (dist) => truncate(join(dist, "istiod.blob"), 1_000_000)],
    ["nothing tells what it was made for", (dist) => rm(join(dist, "istiod.blob.sizes"))],
    ["another module is to be loaded first", async () => {}, { NODE_OPTIONS: "--require=node:path" }],
  ];
  for (const [about, change, env] of fallbacks)
    it(`starts without it where ${about}`, async () => {
      const root = await layout();
      await change(join(root, "dist"));
      expect(await usesSnapshot(await start(root, env))).toBe(false);
    });
});
