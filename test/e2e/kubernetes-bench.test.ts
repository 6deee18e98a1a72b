import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, it } from "vitest";
import { QUICK_CLUSTER } from "../../bench/cluster.ts";
import { comparedTable } from "../../bench/peer.ts";
import { withCluster } from "../../bench/report.ts";
import { clusterImpossible } from "../cluster/start-cluster.ts";

const ROOT = join(import.meta.dirname, "../..");
const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

interface Line {
  readonly bench: string;
  readonly scenario?: string;
  readonly unit?: string;
  readonly ours?: number;
}

describe("the bench of a cluster", () => {
  it.skipIf(reason !== undefined)(
    "serves the objects of a real API server, and a change of one EndpointSlice reaches every proxy",
    async () => {
      const { stdout } = await promisify(execFile)(process.execPath, [join(ROOT, "bench/run.ts"), "--cluster", "--quick"], { cwd: ROOT });
      const lines = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Line);
      const value = (scenario: string, unit: string): number =>
        lines.find((line) => line.scenario === scenario && line.unit === unit)?.ours ?? assert.fail(`${scenario} in ${unit}`);
      assert.equal(lines[0]?.bench, "machine");
      assert.equal(value("endpoint change, reached", "proxies"), QUICK_CLUSTER.shape.proxies);
      for (const [scenario, unit] of [
        ["start to ready", "ms"],
        ["memory when ready", "MB"],
        ["all proxies initialised", "ms"],
        ["all proxies initialised", "CPU s"],
        ["memory when all are initialised", "MB"],
        ["endpoint change to the last proxy, p99", "ms"],
      ] as const)
        assert.ok(value(scenario, unit) > 0, `${scenario} in ${unit}`);
    },
  );

  it("has a place in BENCHMARKS.md", () => {
    const report = readFileSync(join(ROOT, "BENCHMARKS.md"), "utf8");
    const machine = { date: "2026-01-01", cpu: "a processor", cores: 2, memory_gb: 8, node: "v24.0.0", load: 0 };
    const rows = [
      { scenario: "start to ready", unit: "ms", ours: 1600, peer: 800, ratio: 0.5, goal: "at most 1500 ms", ok: false },
    ] as const;
    const once = withCluster(report, machine, comparedTable(rows));
    assert.ok(once.includes("| start to ready | ms | **1600** | 800 | 0.5 | at most 1500 ms: **missed** |"));
    assert.equal(withCluster(once, machine, comparedTable(rows)), once);
  });
});
