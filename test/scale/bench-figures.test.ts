import assert from "node:assert/strict";
import { createServer } from "node:net";
import { describe, it } from "vitest";
import { againstFloor, FLOORED } from "../../bench/floors.ts";
import { growthFaults, growthOf } from "../../bench/growth.ts";
import { listeningProcess } from "../../bench/listening-process.ts";
import { byMode, comparedTable, middleOf } from "../../bench/peer.ts";
import { compare, FIGURES, type Figure, type Run, type RunName } from "../../bench/peer-figures.ts";
import { overTls, overTlsTable } from "../../bench/peer-tls.ts";
import { plot, plotFile } from "../../bench/plot.ts";
import type { LoadLine } from "../../bench/xdsload.ts";

const runOf = (lines: readonly LoadLine[]): ReadonlyMap<RunName, Run> =>
  new Map([["plain", { lines: new Map(lines.map((line) => [line.mode, line])), start: { readyMs: 900, rssMb: 110 } }]]);

const figure = (scenario: string, unit: Figure["unit"]): Figure =>
  FIGURES.find((one) => one.scenario === scenario && one.unit === unit) ?? assert.fail(scenario);

describe("figures beside a peer", () => {
  const ours = runOf([{ mode: "init", init_total_ms: 5_000, srv_cpu_until_init_s: 9 }]);
  const peer = runOf([{ mode: "init", init_total_ms: 50_000, srv_cpu_until_init_s: 78 }]);

  it("say how many times ours the peer's is, and whether that is enough", () => {
    const init = "all proxies initialised";
    assert.deepEqual(compare(figure(init, "ms"), ours, peer), {
      scenario: init,
      unit: "ms",
      ours: 5_000,
      peer: 50_000,
      ratio: 10,
      goal: "8×",
      ok: true,
    });
    assert.equal(compare(figure(init, "CPU s"), ours, peer)?.ok, false);
  });

  it("hold a limit without a peer, and are silent about what was not measured", () => {
    assert.equal(compare(figure("memory when ready", "MB"), ours, new Map())?.ok, true);
    assert.equal(compare(figure("restart", "CPU s"), ours, peer), undefined);
  });

  it("of a restart are enough by the limit or, on a slower machine, by the ratio it was set for", () => {
    const restarted = (seconds: number): ReadonlyMap<RunName, Run> =>
      new Map([["restart", { lines: new Map([["restart", { mode: "restart", srv_cpu_s: seconds }]]), start: { readyMs: 1, rssMb: 1 } }]]);
    const row = (mine: number, theirs: number) => compare(figure("restart", "CPU s"), restarted(mine), restarted(theirs));
    assert.deepEqual([row(0.5, 11)?.ok, row(0.6, 14)?.ok, row(0.6, 13)?.ok], [true, true, false]);
    assert.equal(row(0.6, 13)?.goal, "at most 0.5 CPU s or 22.8×");
    assert.equal(compare(figure("restart", "CPU s"), restarted(0.6), new Map())?.ok, false);
  });

  it("are told as missed in the table", () => {
    const row = compare(figure("all proxies initialised", "CPU s"), ours, peer);
    assert.ok(row !== undefined && comparedTable([row]).at(-1)?.includes("10×: **missed**"));
  });
});

describe("floors", () => {
  const floored = (mode: string) => FLOORED.find((one) => one.mode === mode) ?? assert.fail(mode);
  const floor = (times: number) => ({
    mode: "floor",
    server: { send_cpu_s: times, send_wall_s: times / 10, accept_cpu_s: times / 2, rss_peak_mb: 1 },
    all_received: { n: 1, last_ms: 1_000 * times },
  });
  const measured = [7, 1, 0.1].map(floor);
  const ratios = (mode: string, line: LoadLine, idle = 0) =>
    againstFloor(floored(mode), { line, idle }, measured).map(({ unit, ratio, ok }) => [unit, ratio, ok]);

  it("are of CPU and of the time to the last proxy, by the middle of what was measured", () => {
    assert.deepEqual(ratios("init", { mode: "init", srv_cpu_until_init_s: 3, init_total_ms: 1_200 }), [
      ["CPU s of the floor", 2, false],
      ["ms of the floor", 1.2, true],
    ]);
    assert.deepEqual(ratios("route-change", { mode: "route-change", srv_cpu_s_per_change: 1, median_last_ms: 200 }), [
      ["CPU s of the floor", 1, true],
      ["ms of the floor", 2, false],
    ]);
    assert.deepEqual(ratios("churn", { mode: "churn", srv_cpu_s: 1.25 }), [["CPU s of the floor", 1.25, true]]);
  });

  it("take for doing nothing the least of what was seen, since what was put off is not part of it", () => {
    const lines = [0.3, 0.02, 0.1].map((srv_cpu_s) => ({ mode: "idle", srv_cpu_s }));
    assert.equal(byMode([{ mode: "init" }, ...lines]).get("idle")?.srv_cpu_s, 0.02);
    assert.deepEqual([...byMode([{ mode: "init" }]).keys()], ["init"]);
  });

  it("are not held against what ours takes for doing nothing while a change is waited for", () => {
    const change = { mode: "noop-change", srv_cpu_s_per_change: 2, iterations: [{ wall_s: 4 }, { wall_s: 2 }, { wall_s: 1 }] };
    assert.deepEqual(ratios("noop-change", change, 0.25)[0], ["CPU s of the floor", 1.5, true]);
    assert.deepEqual(ratios("noop-change", change)[0], ["CPU s of the floor", 2, false]);
  });
});

describe("figures over TLS", () => {
  const plaintext = runOf([{ mode: "init", init_total_ms: 4_000, srv_cpu_until_init_s: 5 }]);
  const peer = runOf([{ mode: "init", init_total_ms: 50_000, srv_cpu_until_init_s: 90 }]);
  const row = (unit: Figure["unit"], line: LoadLine, beside: ReadonlyMap<RunName, Run> = peer) =>
    overTls(figure("all proxies initialised", unit), { plaintext, ours: runOf([line]), peer: beside }) ?? assert.fail(unit);

  it("may take more memory than in plaintext, as far as the peer does too", () => {
    const memory = (srv_rss_mb: number, timesPeer: number) => {
      const [ours, theirs] = [srv_rss_mb, srv_rss_mb * timesPeer].map((mb) => runOf([{ mode: "route-change", srv_rss_mb: mb }]));
      assert.ok(ours !== undefined && theirs !== undefined);
      return overTls(figure("memory after the route changes", "MB"), { plaintext: ours, ours, peer: theirs })?.ok;
    };
    assert.deepEqual([memory(240, 2), memory(300, 4.3), memory(300, 4.1)], [true, true, false]);
  });

  it("keep what is wanted beside the peer, and their CPU stays near that of plaintext", () => {
    const good = row("CPU s", { mode: "init", srv_cpu_until_init_s: 8 });
    assert.deepEqual([good.ratio, good.timesPlaintext, good.ok], [11.25, 1.6, true]);
    const dear = row("CPU s", { mode: "init", srv_cpu_until_init_s: 9 });
    assert.deepEqual([dear.ratio, dear.timesPlaintext, dear.ok], [10, 1.8, false]);
    assert.ok(overTlsTable([dear]).at(-1)?.includes("10×, at most 1.7× plaintext: **missed**"));
    assert.equal(row("CPU s", { mode: "init", srv_cpu_until_init_s: 8 }, new Map()).ok, true);
  });

  it("may take of a processor what plaintext may, and as much more as TLS", () => {
    const restart = (seconds: number): ReadonlyMap<RunName, Run> =>
      new Map([["restart", { lines: new Map([["restart", { mode: "restart", srv_cpu_s: seconds }]]), start: { readyMs: 1, rssMb: 1 } }]]);
    const judged = (mine: number, theirs: number) =>
      overTls(figure("restart", "CPU s"), { plaintext: restart(0.55), ours: restart(mine), peer: restart(theirs) });
    assert.deepEqual([judged(0.85, 9)?.ok, judged(0.9, 12.5)?.ok, judged(0.9, 11)?.ok, judged(1, 20)?.ok], [true, true, false, false]);
    assert.equal(judged(0.85, 9)?.goal, "at most 0.85 CPU s or 13.4×, at most 1.7× plaintext");
  });

  it("say of times what they are in plaintext, without a goal for it", () => {
    const { plaintext: bare, timesPlaintext, goal } = row("ms", { mode: "init", init_total_ms: 5_000 });
    assert.deepEqual([bare, timesPlaintext, goal], [4_000, undefined, "8×"]);
  });
});

describe("certificates signed", () => {
  const signed = (run: Partial<LoadLine>): ReadonlyMap<RunName, Run> =>
    new Map([["csr", { lines: new Map([["csr", { mode: "csr", ...run }]]), start: { readyMs: 0, rssMb: 0 } }]]);
  const judged = (ours: number, peer: number) => {
    const row = compare(figure("certificates signed", "CSR/s"), signed({ csr_per_s: ours }), signed({ csr_per_s: peer }));
    return [row?.ratio, row?.ok];
  };

  it("are more where they are better, on the machine of the goal or beside the peer", () => {
    assert.deepEqual(judged(2_600, 1_300), [2, true]);
    assert.deepEqual(judged(2_000, 800), [2.5, true]);
    assert.deepEqual(judged(2_000, 1_000), [2, false]);
  });
});

describe("restarts", () => {
  const restart = (cpu: number, last: number, bytes: number): Run => ({
    lines: new Map([
      ["restart", { mode: "restart", srv_cpu_s: cpu, served: { n: 1, last_ms: last }, resent: { total: { bytes, messages: 0 } } }],
    ]),
    start: { readyMs: 1, rssMb: 1 },
  });

  it("give of each figure the middle one, and of what is sent again the most", () => {
    const { srv_cpu_s, served, resent } =
      middleOf([restart(0.5, 2_100, 0), restart(0.4, 1_000, 7), restart(0.6, 1_200, 0)]).lines.get("restart") ?? assert.fail();
    assert.deepEqual([srv_cpu_s, served?.last_ms, resent?.total?.bytes], [0.5, 1_200, 7]);
  });
});

describe("growth", () => {
  it("is the power of the size", () => {
    const by = (power: number) => [1, 2, 4, 8].map((x) => [x, 3 * x ** power] as const);
    for (const power of [0, 0.5, 1, 2]) assert.ok(Math.abs(growthOf(by(power)).power - power) < 1e-9, `${power}`);
  });

  it("is a fault where it is more than linear and that is no chance", () => {
    const curve = (points: readonly (readonly [number, number])[]) => [{ axis: "services", cost: "CPU of a change", unit: "ms", points }];
    assert.deepEqual(growthFaults(curve([1, 2, 4, 8].map((x) => [x, 10 * x]))), []);
    assert.match(
      growthFaults(curve([1, 2, 4, 8].map((x) => [x, 10 * x ** 2])))[0] ?? "",
      /^CPU of a change grows with services to the power of 2.00/,
    );
    const scattered = [
      [1, 10],
      [2, 90],
      [4, 20],
      [8, 400],
    ] as const;
    assert.ok(growthOf(scattered).power > 1.15);
    assert.deepEqual(growthFaults(curve(scattered)), []);
  });

  it("is drawn with every point, in a file named after it", () => {
    const curve = { axis: "services", cost: "CPU of a change", unit: "ms", points: [[1, 2] as const, [3, 4] as const] };
    assert.equal(plot(curve).match(/<circle/g)?.length, 2);
    assert.equal(plotFile(curve), "cpu-of-a-change-by-services.svg");
  });
});

describe("the process behind a port", () => {
  it("is found while it listens", async () => {
    const server = createServer();
    const port = await new Promise<number>((resolve) =>
      server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        resolve(typeof address === "object" && address !== null ? address.port : 0);
      }),
    );
    assert.equal(listeningProcess(port), process.pid);
    await new Promise((resolve) => server.close(resolve));
    assert.equal(listeningProcess(port), undefined);
  });
});
