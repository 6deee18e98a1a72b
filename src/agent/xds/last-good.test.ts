import { appendFile, mkdir, readdir, readFile, rename, rmdir, stat, truncate } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { tempDir } from "../../../test/support/cleanup.ts";
import { holds } from "../../../test/support/holds.ts";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { type DeltaResource, readDeltaResource } from "../../wire/delta-frames.ts";
import { textField } from "../../wire/field-writer.ts";
import { CLUSTER_TYPE, LISTENER_TYPE, SECRET_TYPE } from "../../wire/type-urls.ts";
import { type LastGood, type LastGoodOptions, openLastGood } from "./last-good.ts";

const resource = (name: string, version: string): DeltaResource =>
  readDeltaResource(Buffer.concat([textField(1, version), textField(3, name)]));

const opened = (directory: string, options: Partial<LastGoodOptions> = {}): LastGood =>
  openLastGood({ directory, nodeId: "a", clock: systemClock, log: silentLog, ...options });

const versions = async (lastGood: LastGood, typeUrl = CLUSTER_TYPE): Promise<Record<string, string>> =>
  Object.fromEntries([...(await lastGood.read(typeUrl))].map(([name, { version }]) => [name, version]));

describe("what Envoy accepted", () => {
  it("is there after a restart, for the same node only", async () => {
    const directory = join(await tempDir(), "kept");
    const before = opened(directory);
    before.note(CLUSTER_TYPE, [resource("a", "1"), resource("b", "1")], []);
    before.note(CLUSTER_TYPE, [resource("a", "2")], ["b"]);
    await before.flush();
    expect(await versions(opened(directory))).toEqual({ a: "2" });
    const [file = ""] = await readdir(directory);
    expect((await stat(join(directory, file))).mode & 0o777).toBe(0o600);
    expect(await versions(opened(directory, { nodeId: "other" }))).toEqual({});
  });

  it("is as if the last change had not been, where that was not written to its end", async () => {
    const directory = await tempDir();
    const before = opened(directory);
    before.note(CLUSTER_TYPE, [resource("a", "1")], []);
    await before.flush();
    before.note(CLUSTER_TYPE, [resource("b", "1"), resource("a", "2")], []);
    await before.flush();
    const [file = ""] = await readdir(directory);
    const path = join(directory, file);
    await truncate(path, (await stat(path)).size - 1);
    const after = opened(directory);
    expect(await versions(after)).toEqual({ a: "1", b: "1" });
    after.note(CLUSTER_TYPE, [resource("c", "1")], []);
    expect(await versions(after)).toEqual({ a: "1", b: "1", c: "1" });
    await appendFile(path, "garbage");
    expect(await versions(opened(directory))).toMatchObject({ a: "1", b: "1", c: "1" });
  });

  it("does not grow with the number of changes", async () => {
    const directory = await tempDir();
    const lastGood = opened(directory);
    for (let turn = 0; turn < 200; turn++) {
      lastGood.note(CLUSTER_TYPE, [resource("a".repeat(1_000), String(turn))], []);
      await lastGood.flush();
    }
    const [file = ""] = await readdir(directory);
    expect((await stat(join(directory, file))).size).toBeLessThan(80_000);
    expect(Object.values(await versions(opened(directory)))).toEqual(["199"]);
  });

  it("that could not be written is had all the same, and written as soon as it can be", async () => {
    const directory = await tempDir();
    const clock = manualClock();
    const lastGood = opened(directory, { clock });
    lastGood.note(CLUSTER_TYPE, [resource("a", "1"), resource("b", "1"), resource("c", "1")], []);
    await lastGood.flush();
    const [file = ""] = await readdir(directory);
    await rename(join(directory, file), join(directory, "aside"));
    await mkdir(join(directory, file)); // Nothing can be written there.
    lastGood.note(CLUSTER_TYPE, [resource("a", "2")], ["b"]);
    await lastGood.flush();
    lastGood.note(CLUSTER_TYPE, [resource("a", "3")], []);
    await lastGood.flush();
    expect(await versions(lastGood)).toMatchObject({ a: "3" });
    await rmdir(join(directory, file));
    await rename(join(directory, "aside"), join(directory, file));
    expect(await versions(opened(directory))).toEqual({ a: "1", b: "1", c: "1" });
    clock.advance(30_000);
    await expect.poll(() => versions(opened(directory))).toEqual({ a: "3", c: "1" });
    lastGood.note(CLUSTER_TYPE, [], ["c"]);
    expect(await versions(lastGood)).toEqual({ a: "3" });
  });

  it("may be nothing, which is not the same as not having been asked", async () => {
    const directory = await tempDir();
    const before = opened(directory);
    before.note(CLUSTER_TYPE, [], []);
    await before.flush();
    const [after, other] = [opened(directory), opened(directory)];
    expect([await after.knows(CLUSTER_TYPE), await after.knows(LISTENER_TYPE), await after.knows(SECRET_TYPE)]).toEqual([
      true,
      false,
      false,
    ]);
    expect(await versions(after)).toEqual({});
    // Of a first answer that was cut off nothing is known, not even that.
    other.note(LISTENER_TYPE, [resource("a", "1")], []);
    await other.flush();
    const file = (await readdir(directory)).find((name) => name.includes("lds")) ?? "";
    await truncate(join(directory, file), 1);
    expect(await opened(directory).knows(LISTENER_TYPE)).toBe(false);
  });

  it("is nothing also after it was written anew", async () => {
    const directory = await tempDir();
    const before = opened(directory);
    before.note(CLUSTER_TYPE, [resource("a".repeat(100_000), "1")], []);
    await before.flush();
    before.note(CLUSTER_TYPE, [], ["a".repeat(100_000)]);
    await before.flush();
    const [file = ""] = await readdir(directory);
    expect((await stat(join(directory, file))).size).toBeLessThan(10);
    expect(await opened(directory).knows(CLUSTER_TYPE)).toBe(true);
  });

  it("is not kept beyond a limit, and secrets are not put on disk", async () => {
    const directory = await tempDir();
    const lastGood = opened(directory, { mostBytes: 50 });
    lastGood.note(CLUSTER_TYPE, [resource("a".repeat(100), "1")], []);
    lastGood.note(SECRET_TYPE, [resource("kubernetes://key", "1")], []);
    await lastGood.flush();
    expect(await versions(lastGood)).toEqual({});
    expect(await versions(lastGood, SECRET_TYPE)).toEqual({ "kubernetes://key": "1" });
    for (const file of await readdir(directory)) expect((await readFile(join(directory, file))).includes("key")).toBe(false);
  });

  it("equals what was noted, whatever the order", async () => {
    const names = fc.constantFrom("a", "b", "c", "d");
    const change = fc.record({ put: fc.array(fc.tuple(names, fc.nat(9))), removed: fc.array(names), restart: fc.boolean() });
    await holds(
      fc.asyncProperty(fc.array(change, { maxLength: 8 }), async (changes) => {
        const directory = await tempDir();
        const model = new Map<string, string>();
        let lastGood = opened(directory);
        for (const { put, removed, restart } of changes) {
          const gone = removed.filter((name) => !put.some(([one]) => one === name));
          lastGood.note(
            CLUSTER_TYPE,
            put.map(([name, version]) => resource(name, String(version))),
            gone,
          );
          for (const [name, version] of put) model.set(name, String(version));
          for (const name of gone) model.delete(name);
          if (!restart) continue;
          await lastGood.flush();
          lastGood = opened(directory);
        }
        expect(await versions(lastGood)).toEqual(Object.fromEntries(model));
      }),
      { numRuns: 30 },
    );
  });
});
