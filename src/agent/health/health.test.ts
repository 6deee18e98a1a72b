import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, onTestFinished } from "vitest";
import { tempDir } from "../../../test/support/cleanup.ts";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { eventually } from "../../../test/support/wait.ts";
import { systemClock } from "../../base/clock.ts";
import { watchHealth } from "./health-watch.ts";
import { readReadinessProbe } from "./readiness-probe.ts";
import { runCommand } from "./run-command.ts";

describe("a readiness probe", () => {
  it("has Istio's times and thresholds where none are given", () =>
    assert.deepEqual(readReadinessProbe({ httpGet: { port: 80 } }), {
      initialDelayMs: 0,
      timeoutMs: 1_000,
      periodMs: 10_000,
      successes: 1,
      failures: 1,
      method: { kind: "http", port: 80, path: "/", tls: false, headers: [] },
      host: undefined,
    }));

  it("may ask in four ways", () => {
    const told = readReadinessProbe({ periodSeconds: 2, failureThreshold: 3, tcpSocket: { port: 81, host: "10.0.0.1" } });
    assert.deepEqual([told?.periodMs, told?.failures, told?.method, told?.host], [2_000, 3, { kind: "tcp", port: 81 }, "10.0.0.1"]);
    assert.deepEqual(readReadinessProbe({ grpc: { port: 82, service: "s" } })?.method, { kind: "grpc", port: 82, service: "s" });
    assert.deepEqual(readReadinessProbe({ exec: { command: ["test", "-e", "f"] } })?.method, {
      kind: "exec",
      command: ["test", "-e", "f"],
    });
    assert.equal(readReadinessProbe(undefined), undefined);
  });

  for (const [name, probe] of Object.entries({
    "asks in no way": {},
    "asks in two ways": { httpGet: { port: 80 }, grpc: { port: 80 } },
    "names no port": { httpGet: {} },
    "names no command": { exec: { command: [] } },
    "has a time that is none": { httpGet: { port: 80 }, periodSeconds: -1 },
  }))
    it(`that ${name} is refused`, () => assert.throws(() => readReadinessProbe(probe), /readinessProbe of PROXY_CONFIG cannot be used/));
});

describe("a watch", () => {
  it("believes as many equal answers in a row as asked, and tells changes only", async () => {
    const clock = manualClock();
    const abort = new AbortController();
    onTestFinished(() => abort.abort());
    const told: (string | undefined)[] = [];
    let started = false;
    let asked = 0;
    let fault: string | undefined;
    const watch = watchHealth({
      probe: { initialDelayMs: 5_000, periodMs: 1_000, successes: 2, failures: 3 },
      started: async () => started,
      ask: async () => {
        asked += 1;
        return fault;
      },
      changed: (news) => void told.push(news),
      clock,
      signal: abort.signal,
    });
    const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
    const pass = async (ms: number): Promise<void> => {
      for (let left = ms; left > 0; left -= 250) {
        clock.advance(250);
        await settle();
      }
    };
    await pass(6_000);
    assert.equal(asked, 0);
    started = true;
    await pass(500);
    assert.deepEqual([asked, told, watch.state], [1, [], undefined]);
    await pass(1_000);
    assert.deepEqual(told, [undefined]);
    fault = "gone";
    await pass(2_000);
    fault = undefined;
    await pass(1_000);
    fault = "gone again";
    await pass(2_000);
    assert.deepEqual(told, [undefined]);
    await pass(1_000);
    assert.deepEqual(told, [undefined, "gone again"]);
    assert.deepEqual(watch.state, { fault: "gone again" });
    await pass(10_000);
    fault = undefined;
    await pass(2_000);
    assert.deepEqual(told, [undefined, "gone again", undefined]);
  });
});

describe("a command", () => {
  it("says by its status whether the workload is well", async () => {
    assert.equal(await runCommand(["true"], 60_000, systemClock), undefined);
    assert.equal(await runCommand(["sh", "-c", "echo no database; exit 3"], 60_000, systemClock), "sh ended with status 3: no database");
    assert.match((await runCommand(["/nowhere/to/be/found"], 60_000, systemClock)) ?? "", /cannot be run/);
  });

  it("that hangs is ended with all it started", async () => {
    const file = join(await tempDir(), "pid");
    const hung = runCommand(["sh", "-c", `sleep 600 & echo $! > ${file}; wait`], 6_000, systemClock);
    const pid = await eventually("it has started something", async () => Number(await readFile(file, "utf8").catch(() => "")) || undefined);
    assert.equal(await hung, "sh did not end in time");
    await eventually("it is gone", async () => {
      // One that nobody has waited for yet is still listed, as a zombie.
      const state = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "gone");
      return state === "gone" || state.includes(") Z ");
    });
  });
});
