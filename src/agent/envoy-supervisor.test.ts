import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { tempDir } from "../../test/support/cleanup.ts";
import { documentServer } from "../../test/support/document-server.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { systemClock } from "../base/clock.ts";
import { silentLog } from "../base/log.ts";
import { type EnvoyProcess, startEnvoy } from "./envoy-process.ts";
import { activeConnections, createEnvoySupervisor } from "./envoy-supervisor.ts";

const STATS = "/stats?filter=downstream_cx_active$";

/** Processes that the test ends; they answer nothing. */
function fakeEnvoys() {
  const running: { readonly exit: (status: number) => void }[] = [];
  const start = async (): Promise<EnvoyProcess> => {
    const { promise: exited, resolve } = Promise.withResolvers<number | null>();
    running.push({ exit: resolve });
    return { exited, pid: 1, stop: async () => resolve(0) } as unknown as EnvoyProcess;
  };
  return { running, start };
}

async function startSupervisor(start: () => Promise<EnvoyProcess>) {
  const pidFile = join(await tempDir(), "envoy.pid");
  const supervisor = createEnvoySupervisor({
    start,
    adminPort: 1,
    pidFile,
    drain: { inboundOnly: true, forMs: 60_000, untilIdle: undefined },
    clock: systemClock,
    log: silentLog,
  });
  const stop = new AbortController();
  return { pidFile, stop, run: () => supervisor.run(stop.signal, new AbortController().signal), supervisor };
}

describe("an Envoy that is looked after", () => {
  it("is started again when it ends by itself, and ended when that is wanted, though it cannot be drained", async () => {
    const { running, start } = fakeEnvoys();
    const { stop, run, supervisor } = await startSupervisor(start);
    const done = run();
    for (const count of [1, 2]) {
      await expect.poll(() => running.length).toBe(count);
      running[count - 1]?.exit(11);
    }
    await expect.poll(() => running.length).toBe(3);
    expect(await supervisor.ready()).toBe(false);
    stop.abort();
    await done;
    expect(running).toHaveLength(3);
  });

  it("is waited for longer each time where it crashes at once or cannot be started again; the first must start", async () => {
    const clock = manualClock();
    const waits: number[] = [];
    const outcomes = ["runs", "fails", "fails", "runs", "fails"];
    let starts = 0;
    const stop = new AbortController();
    const options = {
      adminPort: 1,
      pidFile: join(await tempDir(), "absent", "envoy.pid"),
      drain: { inboundOnly: true, forMs: 0, untilIdle: undefined },
      clock: { ...clock, sleep: async (ms: number) => void waits.push(ms) },
      log: silentLog,
    };
    const start = async (): Promise<EnvoyProcess> => {
      if (starts === outcomes.length) stop.abort();
      if (outcomes[starts++] !== "runs") throw new Error("ENOSPC");
      return { exited: Promise.resolve(11), pid: 1 } as unknown as EnvoyProcess;
    };
    await createEnvoySupervisor({ ...options, start }).run(stop.signal, stop.signal);
    expect(waits).toHaveLength(outcomes.length);
    for (const [index, ms] of waits.entries()) {
      expect(ms).toBeGreaterThanOrEqual(100 * 2 ** index);
      expect(ms).toBeLessThanOrEqual(200 * 2 ** index);
    }
    await expect(
      createEnvoySupervisor({ ...options, start: () => Promise.reject(new Error("no Envoy")) }).run(
        new AbortController().signal,
        new AbortController().signal,
      ),
    ).rejects.toThrow("no Envoy");
  });

  it("is waited for no longer than at first where it ran for long", async () => {
    const clock = manualClock();
    const waits: number[] = [];
    const stop = new AbortController();
    let starts = 0;
    const start = async (): Promise<EnvoyProcess> => {
      if (starts++ === 4) stop.abort();
      const end = async (): Promise<number> => {
        if (starts === 4) clock.advance(61_000); // It ran for more than a minute.
        return 11;
      };
      return { exited: Promise.resolve().then(end), pid: 1, stop: async () => {} } as unknown as EnvoyProcess;
    };
    await createEnvoySupervisor({
      start,
      adminPort: 1,
      pidFile: join(await tempDir(), "envoy.pid"),
      drain: { inboundOnly: true, forMs: 0, untilIdle: undefined },
      clock: { ...clock, sleep: async (ms: number) => void waits.push(ms) },
      log: silentLog,
    }).run(stop.signal, stop.signal);
    expect(waits[2]).toBeGreaterThanOrEqual(400);
    expect(waits[3]).toBeLessThanOrEqual(200);
  });

  it.for([
    [true, "/drain_listeners?inboundonly&graceful"],
    [false, "/drain_listeners?graceful"],
  ] as const)("is drained of clients alone where that is wanted (%s)", async ([inboundOnly, asked]) => {
    const admin = await documentServer();
    for (const path of ["/healthcheck/fail", asked]) admin.documents.set(path, "OK");
    const { running, start } = fakeEnvoys();
    const stop = new AbortController();
    const options = { start, adminPort: admin.port, pidFile: join(await tempDir(), "envoy.pid"), clock: systemClock, log: silentLog };
    const done = createEnvoySupervisor({ ...options, drain: { inboundOnly, forMs: 10, untilIdle: undefined } }).run(
      stop.signal,
      new AbortController().signal,
    );
    await expect.poll(() => running.length).toBe(1);
    stop.abort();
    await done;
    expect(admin.asked).toEqual(["/healthcheck/fail", asked]);
  });

  it("is ended when the last connection is gone, where that is wanted, and not before the least time", async () => {
    const admin = await documentServer();
    const counts = ["2", "1", "too busy", "1", "0", "0"];
    for (const path of ["/healthcheck/fail", "/drain_listeners?inboundonly&graceful"]) admin.documents.set(path, "OK");
    admin.documents.set(STATS, (_, response) => {
      const count = counts.shift();
      if (count === "too busy") response.destroy();
      else response.end(`listener.0.0.0.0_15006.downstream_cx_active: ${count}\n`);
    });
    const waits: number[] = [];
    const { running, start } = fakeEnvoys();
    const stop = new AbortController();
    const done = createEnvoySupervisor({
      start,
      adminPort: admin.port,
      pidFile: join(await tempDir(), "envoy.pid"),
      clock: { ...systemClock, sleep: async (ms: number) => void waits.push(ms) },
      log: silentLog,
      drain: { inboundOnly: true, forMs: 1, untilIdle: { leastMs: 5_000, ignoredPorts: [] } },
    }).run(stop.signal, new AbortController().signal);
    await expect.poll(() => running.length).toBe(1);
    stop.abort();
    await done;
    expect(admin.asked.slice(2)).toEqual([STATS, STATS, STATS, STATS, STATS]);
    expect(waits).toEqual([5_000, 500, 500, 500, 500]);
  });

  it("is said to be gone with what killed it, and not started at all where it cannot be run", async () => {
    const workDir = await tempDir();
    const start = (binary: string): Promise<EnvoyProcess> =>
      startEnvoy({ binary, workDir, name: "envoy", bootstrap: "{}", adminPort: 1, clock: systemClock });
    const [script, text] = [join(workDir, "script"), join(workDir, "text")];
    await writeFile(script, "#!/bin/sh\nkill -SEGV $$\n", { mode: 0o755 });
    await writeFile(text, "no program", { mode: 0o644 });
    const crashed = await start(script);
    expect(await crashed.exited).toBeNull();
    expect(crashed.killedBy).toBe("SIGSEGV");
    await expect(start(text)).rejects.toThrow(/Envoy cannot be run: .*EACCES/);
  });

  it("ends quietly where it was not yet started", async () => {
    const { stop, run } = await startSupervisor(
      () => new Promise((_, reject) => stop.signal.addEventListener("abort", () => reject(new Error("too late")))),
    );
    const done = run();
    stop.abort();
    await expect(done).resolves.toBeUndefined();
  });

  it("takes the place of one that outlived its agent, and of no other process", async () => {
    const { start } = fakeEnvoys();
    const { pidFile, stop, run } = await startSupervisor(start);
    const orphan = spawn("sleep", ["60"], { argv0: `${pidFile.slice(0, -"envoy.pid".length)}envoy.bootstrap.pb`, stdio: "ignore" });
    const stranger = spawn("sleep", ["60"], { stdio: "ignore" });
    onTestFinished(() => void [orphan, stranger].map((child) => child.kill("SIGKILL")));
    await writeFile(pidFile, String(orphan.pid));
    const gone = once(orphan, "exit");
    const done = run();
    await gone;
    await expect.poll(() => readFile(pidFile, "utf8")).toBe("1");
    stop.abort();
    await done;
    await writeFile(pidFile, String(stranger.pid));
    const again = await startSupervisor(start);
    await writeFile(again.pidFile, String(stranger.pid));
    again.stop.abort();
    await again.run();
    expect(await readFile(`/proc/${stranger.pid}/cmdline`, "utf8")).toContain("sleep");
  });
});

describe("connections of clients", () => {
  it("are those of listeners, but for Envoy's own, their parts and those of probes", () => {
    const stats = [
      "http.inbound.downstream_cx_active: 9",
      "listener.0.0.0.0_15006.downstream_cx_active: 2",
      "listener.0.0.0.0_15006.worker_0.downstream_cx_active: 2",
      "listener.0.0.0.0_15021.downstream_cx_active: 1",
      "listener.admin.downstream_cx_active: 1",
      "listener.admin.main_thread.downstream_cx_active: 1",
      "listener.[fd00::1]_8080.downstream_cx_active: 3",
    ].join("\n");
    expect(activeConnections(stats, [15_021, 15_090])).toBe(5);
  });
});
