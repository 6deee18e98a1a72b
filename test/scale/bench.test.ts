import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, it } from "vitest";
import type { Measurement } from "../../bench/measurement.ts";
import { withAgent, withResults } from "../../bench/report.ts";

const ROOT = join(import.meta.dirname, "../..");
const TIMEOUT_MS = 400_000;

const NAMES = [
  "machine",
  "start-empty",
  "start-loaded",
  "start-again",
  "first-proxy-after-seconds",
  "load",
  "prepare-ahead",
  "generate-first-proxy",
  "generate-same-class",
  "generate-other-namespace",
  "generate-route-change",
  "engine",
  "first-proxy",
  "other-proxies",
  "endpoint-change",
  "endpoint-change-debounced",
  "endpoint-change-in-large-file",
  "route-change",
  "private-route-change",
  "change-of-everything",
  "change-without-effect",
  "memory",
  "memory-peak",
  "first-proxy-vhds",
  "other-proxies-vhds",
  "route-change-vhds",
  "private-route-change-vhds",
  "memory-vhds",
  "memory-peak-vhds",
  "first-proxy",
  "other-proxies",
  "endpoint-change",
  "endpoint-change-debounced",
  "endpoint-change-in-large-file",
  "route-change",
  "private-route-change",
  "change-of-everything",
  "change-without-effect",
  "churn-lag",
  "churn-drain",
  "memory",
  "memory-peak",
  "first-proxy-vhds",
  "other-proxies-vhds",
  "route-change-vhds",
  "private-route-change-vhds",
  "memory-vhds",
  "memory-peak-vhds",
  "restart-resent",
  "restart-last-served",
  "restart-cpu",
  "tls-other-proxies",
  "tls-route-change",
  "tls-endpoint-change",
  "csr-rate",
  "csr-p99",
  "csr-p99-during-push",
];

interface Line {
  readonly bench: string;
  readonly value: number;
  readonly touched?: number;
  readonly streams?: number;
}

describe("the bench", () => {
  it(
    "prints one line per measurement, and changes reach those they concern and nobody else",
    async () => {
      const { stdout } = await promisify(execFile)(process.execPath, [join(ROOT, "bench/run.ts"), "--quick"], {
        cwd: ROOT,
        timeout: TIMEOUT_MS,
      });
      const lines = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Line);
      assert.deepEqual(
        lines.map(({ bench }) => bench),
        NAMES,
      );
      const line = (name: string): Line => lines.find(({ bench }) => bench === name) ?? assert.fail(name);
      const streams = line("memory").streams ?? 0;
      assert.equal(line("endpoint-change").touched, streams);
      assert.equal(line("route-change").touched, streams);
      assert.equal(line("private-route-change").touched, streams / 2);
      assert.equal(line("route-change-vhds").touched, streams);
      assert.equal(line("private-route-change-vhds").touched, streams / 2);
      assert.equal(line("change-without-effect").value, 0);
      assert.equal(line("restart-resent").value, 0);
    },
    TIMEOUT_MS,
  );

  it.for([
    ["results", "<!-- results:", withResults],
    ["those of the agent", "<!-- agent:", withAgent],
  ] as const)("puts %s into BENCHMARKS.md without touching the rest", ([, mark, put]) => {
    const report = readFileSync(join(ROOT, "BENCHMARKS.md"), "utf8");
    const machine = { date: "2026-01-01", cpu: "a processor", cores: 2, memory_gb: 8, node: "v24.0.0", load: 0 };
    const results: readonly Measurement[] = [{ bench: "start", value: 1200, unit: "ms", limit: 1000, details: { rss_mb: 99.96 } }];
    const once = put(report, machine, results);
    assert.ok(once.includes("| start | **1200 ms** | 1000 ms: **missed** | rss_mb 100 |"));
    assert.equal(put(once, machine, results), once);
    const around = (text: string): readonly string[] => {
      const from = text.indexOf(mark);
      return [text.slice(0, from), text.slice(text.indexOf("<!-- end of", from))];
    };
    assert.deepEqual(around(once), around(report));
  });
});
