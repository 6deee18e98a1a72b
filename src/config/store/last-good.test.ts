import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { silentLog } from "../../base/log.ts";
import { createLastGood, type LastGoodRecord } from "./last-good.ts";

let base: string;
let dir: string;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "last-good-"));
  dir = join(base, "var/lib/istio/last-good");
});
afterEach(() => rmSync(base, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 }));

const record = (name: string, value = 1): LastGoodRecord => ({
  source: "file:/conf",
  key: `Thing/ns/${name}`,
  scope: "f.yaml",
  slot: "f.yaml#0",
  origin: { source: "file:/conf", file: "/conf/f.yaml", line: 3 },
  defaultNamespace: "ns",
  content: { metadata: { name }, spec: { value } },
});

describe("last good on disk", () => {
  it("gives back what was put, for the owner's eyes only", async () => {
    const lastGood = createLastGood(dir, { log: silentLog });
    expect(await lastGood.load()).toEqual([]);
    lastGood.put(record("x", 1));
    lastGood.put(record("x", 2));
    lastGood.put(record("y"));
    lastGood.put(record("z"));
    lastGood.remove("file:/conf", "Thing/ns/z");
    lastGood.remove("file:/conf", "Thing/ns/never");
    await lastGood.flush();
    expect(await createLastGood(dir, { log: silentLog }).load()).toEqual([record("x", 2), record("y")]);
    for (const name of readdirSync(dir)) expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600);
    expect(statSync(dir).mode & 0o777).toBe(0o700);
  });

  it("leaves out what it cannot read, and sweeps away what a crash left", async () => {
    const lastGood = createLastGood(dir, { log: silentLog });
    lastGood.put(record("x"));
    await lastGood.flush();
    const [name = ""] = readdirSync(dir);
    writeFileSync(join(dir, "broken.json"), readFileSync(join(dir, name), "utf8").slice(0, 40));
    writeFileSync(join(dir, "other.json"), "{}");
    writeFileSync(join(dir, `${name}.tmp`), "half");
    expect(await lastGood.load()).toEqual([record("x")]);
    expect(readdirSync(dir).some((one) => one.endsWith(".tmp"))).toBe(false);
  });

  it("does not throw where it cannot write", async () => {
    writeFileSync(join(base, "file"), "");
    const warnings: unknown[] = [];
    const lastGood = createLastGood(join(base, "file/below"), {
      log: { ...silentLog, warn: (...args: unknown[]) => void warnings.push(args) },
    });
    lastGood.put(record("x"));
    await lastGood.flush();
    expect(warnings).toHaveLength(1);
    expect(await lastGood.load()).toEqual([]);
  });
});
