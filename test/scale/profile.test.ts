import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const TIMEOUT_MS = 600_000;

const WORK = [
  ...["start", "first-proxy", "other-proxies", "route-change", "endpoint-change", "change-for-few", "change-without-effect"],
  ...["churn", "route-change-vhds", "restart"],
];

describe("the profile", () => {
  it(
    "says of each kind of work by folder where time and memory go, and which functions take most",
    async () => {
      const { stdout } = await promisify(execFile)(process.execPath, [join(ROOT, "bench/run.ts"), "--profile", "--quick"], {
        cwd: ROOT,
        timeout: TIMEOUT_MS,
      });
      const lines = stdout
        .trim()
        .split("\n")
        .slice(1)
        .map((line) => JSON.parse(line) as Readonly<Record<string, string | number>>);
      assert.deepEqual(
        lines.map(({ bench }) => bench),
        ["cpu", "allocated"].flatMap((kind) => WORK.map((work) => `${kind}-${work}`)),
      );
      for (const kind of ["cpu", "allocated"]) {
        const places = new Set(lines.filter(({ bench }) => String(bench).startsWith(kind)).flatMap(Object.keys));
        for (const place of ["generate", "xds", "config", "node"]) assert.ok(places.has(place), `${kind}: ${place}`);
        assert.ok(!places.has("ours"), `${kind}: something of ours was not found in the source map`);
      }
      for (const { bench, most } of lines) assert.match(String(most), /^.+ \d+ %, .+ \d+ %, .+ \d+ %$/, String(bench));
      assert.match(lines.map(({ most }) => most).join("\n"), /\(\w+\/[\w/-]+\.ts\) \d+ %/);
    },
    TIMEOUT_MS,
  );
});
