import { chmodSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { afterEach, describe, expect, it } from "vitest";
import { cleanUp, object, onCleanUp, Rig } from "./directory-rig.ts";

afterEach(cleanUp);

/** Longer than any event takes, and less than the time until everything is looked at again. */
const BY_EVENT_MS = 15_000;

function elsewhere(): string {
  const dir = mkdtempSync(join(tmpdir(), "elsewhere-"));
  onCleanUp(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

describe("a directory", () => {
  it("that is removed and made again, with the same inode perhaps, is watched again", async () => {
    const rig = new Rig();
    const write = (value: number): void => {
      for (let index = 0; index < 20; index += 1) rig.write(`ns/${index}.yaml`, object(`o${index}`, value));
    };
    write(1);
    await rig.start();
    for (let value = 2; value < 12; value += 1) {
      rmSync(join(rig.dir, "ns"), { recursive: true });
      write(value);
      await rig.quiet(7 * value);
    }
    await rig.until(() => rig.say("ns/3.yaml") === "o3=11", BY_EVENT_MS);
    await rig.quiet();
    rig.write("ns/3.yaml", object("o3", 12));
    await rig.until(() => rig.say("ns/3.yaml") === "o3=12", BY_EVENT_MS);
    expect(rig.scopes.size).toBe(20);
    expect(rig.source.sourceHealth().watches, "of itself, of what leads to it, and of the one in it").toBe(3);
  });

  it("that another one takes the place of is read as what it is now, and watched", async () => {
    const rig = new Rig();
    const other = join(elsewhere(), "other");
    rig.write("ns/deep/a.yaml", object("a", 1));
    mkdirSync(join(other, "deep"), { recursive: true });
    writeFileSync(join(other, "deep/a.yaml"), object("a", 2));
    await rig.start();
    renameSync(join(rig.dir, "ns"), join(rig.dir, "../old"));
    renameSync(other, join(rig.dir, "ns"));
    await rig.until(() => rig.say("ns/deep/a.yaml") === "a=2", BY_EVENT_MS);
    rig.write("ns/deep/a.yaml", object("a", 3));
    await rig.until(() => rig.say("ns/deep/a.yaml") === "a=3", BY_EVENT_MS);
  });
});

describe("thousands of directories", () => {
  const DIRECTORIES = 2_000;
  const FILES = 10;
  const LONGEST_MS = 400;

  it("that are all touched at once do not hold the loop", async () => {
    const rig = new Rig();
    const each = Array.from({ length: DIRECTORIES }, (_, index) => `ns${index}`);
    for (const dir of each) for (let file = 0; file < FILES; file += 1) rig.write(`${dir}/${file}.yaml`, object(`o${file}`));
    await rig.start();
    await rig.quiet();
    for (const dir of each) chmodSync(join(rig.dir, dir), 0o700);
    rmSync(join(rig.dir, "ns7"), { recursive: true });
    const delay = monitorEventLoopDelay({ resolution: 10 });
    delay.enable();
    await rig.until(() => rig.scopes.size === FILES * (DIRECTORIES - 1), BY_EVENT_MS);
    await rig.quiet(1_000);
    delay.disable();
    expect(delay.max / 1e6).toBeLessThan(LONGEST_MS);
  });
});

describe("links", () => {
  it("to what is gone for a while are followed when it is back", async () => {
    const rig = new Rig();
    const current = join(elsewhere(), "current");
    const deploy = (value: number): void => {
      mkdirSync(current);
      writeFileSync(join(current, "a.yaml"), object("a", value));
    };
    deploy(1);
    rig.write("x.yaml", object("x"));
    symlinkSync(join(current, "a.yaml"), join(rig.dir, "a.yaml"));
    symlinkSync(current, join(rig.dir, "ns"));
    await rig.start();
    for (const value of [2, 3]) {
      rmSync(current, { recursive: true });
      await rig.until(() => rig.scopes.size === 1, BY_EVENT_MS);
      deploy(value);
      await rig.until(() => rig.say("a.yaml") === `a=${value}` && rig.say("ns/a.yaml") === `a=${value}`, BY_EVENT_MS);
      expect(rig.source.sourceHealth()).toMatchObject({ state: "ok", unwatchedDirectories: 0 });
    }
    rmSync(current, { recursive: true });
    for (const name of ["a.yaml", "ns"]) unlinkSync(join(rig.dir, name));
    await rig.until(() => rig.scopes.size === 1 && rig.source.sourceHealth().watches === 2, BY_EVENT_MS);
  });

  it("to what was never there are followed when it comes", async () => {
    const rig = new Rig();
    const dir = elsewhere();
    symlinkSync(join(dir, "later/a.yaml"), join(rig.dir, "a.yaml"));
    await rig.start();
    mkdirSync(join(dir, "later"));
    await rig.quiet();
    writeFileSync(join(dir, "later/a.yaml"), object("a", 1));
    await rig.until(() => rig.say("a.yaml") === "a=1", BY_EVENT_MS);
  });
});

describe("names that are no text", () => {
  const LATIN_E = 0xe9;
  const named = (dir: string, before: string, after = ""): Buffer =>
    Buffer.concat([Buffer.from(join(dir, before)), Buffer.from([LATIN_E]), Buffer.from(after)]);

  it("are a fault of the file or directory until it is renamed, not passed over", async () => {
    const rig = new Rig();
    rig.write("x.yaml", object("x"));
    writeFileSync(named(rig.dir, "caf", ".yaml"), object("a"));
    mkdirSync(named(rig.dir, "dir"));
    await rig.start();
    writeFileSync(named(rig.dir, "later", ".yaml"), object("b"));
    await rig.until(() => rig.scopes.size === 4, BY_EVENT_MS);
    const faults = [...rig.scopes.values()].flatMap(([first]) => first?.fault ?? []);
    expect(faults).toEqual(Array(3).fill("its name is not UTF-8, and cannot be used: rename it"));
    expect(rig.say("x.yaml")).toBe("x=1");
    for (const name of readdirSync(rig.dir, { encoding: "buffer" })) {
      if (name.includes(LATIN_E))
        renameSync(Buffer.concat([Buffer.from(`${rig.dir}/`), name]), join(rig.dir, name.toString("latin1").replace("é", "e")));
    }
    await rig.until(() => rig.say("cafe.yaml") === "a=1" && rig.say("latere.yaml") === "b=1" && rig.scopes.size === 3, BY_EVENT_MS);
  });
});
