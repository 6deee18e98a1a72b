import assert from "node:assert/strict";
import { createServer } from "node:net";
import { describe, it } from "vitest";
import { exponent } from "../../bench/growth.ts";
import { listeningProcess } from "../../bench/listening-process.ts";
import { comparedTable } from "../../bench/peer.ts";
import { compare, FIGURES, type Figure, type Run, type RunName } from "../../bench/peer-figures.ts";
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

  it("are told as missed in the table", () => {
    const row = compare(figure("all proxies initialised", "CPU s"), ours, peer);
    assert.ok(row !== undefined && comparedTable([row]).at(-1)?.includes("10×: **missed**"));
  });
});

describe("growth", () => {
  it("is the power of the size", () => {
    const by = (power: number) => [1, 2, 4, 8].map((x) => [x, 3 * x ** power] as const);
    for (const power of [0, 0.5, 1, 2]) assert.ok(Math.abs(exponent(by(power)) - power) < 1e-9, `${power}`);
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
