import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../base/clock.ts";
import { cleanUp, nameOf, object, onCleanUp, PATIENT, Rig } from "./directory-rig.ts";
import { FILE_TIMES } from "./file-limits.ts";

afterEach(cleanUp);

describe("first reading", () => {
  it("gives every document with its namespace, place and scope", async () => {
    const rig = new Rig();
    rig.write("top.yaml", `# head\n---\n${object("a")}---\n${object("b")}`);
    rig.write("shop/deep/er/list.yml", `kind: List\nitems:\n- kind: Thing\n  metadata: {name: c}\n- kind: Thing\n  metadata: {name: d}\n`);
    rig.write("shop/one.json", JSON.stringify({ kind: "Thing", metadata: { name: "e" } }));
    rig.write("notes.txt", "not read");
    await rig.start();
    const all = [...rig.scopes.values()].flat();
    expect(all.map((raw) => [nameOf(raw), raw.scope, raw.slot, raw.origin.line, raw.defaultNamespace])).toEqual([
      ["c", "shop/deep/er/list.yml", "shop/deep/er/list.yml#0", 3, "shop"],
      ["d", "shop/deep/er/list.yml", "shop/deep/er/list.yml#1", 5, "shop"],
      ["e", "shop/one.json", "shop/one.json#0", 1, "shop"],
      ["a", "top.yaml", "top.yaml#0", 3, undefined],
      ["b", "top.yaml", "top.yaml#1", 7, undefined],
    ]);
    expect(all[0]?.origin.file).toBe(join(rig.dir, "shop/deep/er/list.yml"));
    expect(rig.source.sourceHealth()).toMatchObject({ state: "ok", files: 3, unreadableFiles: 0 });
  });

  it("ignores what editors and tools leave about", async () => {
    const rig = new Rig();
    for (const name of [
      ".a.yaml.swp",
      "a.yaml~",
      "#a.yaml#",
      ".#a.yaml",
      "a.yaml.tmp",
      ".hidden.yaml",
      "4913",
      ".git/x.yaml",
      "a.yaml___jb_tmp___",
    ]) {
      rig.write(name, object("x"));
    }
    rig.write("a.yaml", object("a"));
    await rig.start();
    expect([...rig.scopes.keys()]).toEqual(["a.yaml"]);
  });
});

describe("changes", () => {
  it("creates, edits, renames and deletes", async () => {
    const rig = await new Rig().start();
    rig.write("a.yaml", object("a", 1));
    await rig.until(() => rig.say("a.yaml") === "a=1");
    rig.write("a.yaml", object("a", 2));
    await rig.until(() => rig.say("a.yaml") === "a=2");
    renameSync(join(rig.dir, "a.yaml"), join(rig.dir, "b.yaml"));
    await rig.until(() => rig.say("b.yaml") === "a=2" && !rig.scopes.has("a.yaml"));
    unlinkSync(join(rig.dir, "b.yaml"));
    await rig.until(() => rig.scopes.size === 0);
  });

  it("follows new, moved and removed directories", async () => {
    const rig = await new Rig().start();
    rig.write("x/y/a.yaml", object("a", 1));
    await rig.until(() => rig.say("x/y/a.yaml") === "a=1");
    rig.write("x/y/a.yaml", object("a", 2));
    await rig.until(() => rig.say("x/y/a.yaml") === "a=2");
    renameSync(join(rig.dir, "x"), join(rig.dir, "z"));
    await rig.until(() => rig.say("z/y/a.yaml") === "a=2" && !rig.scopes.has("x/y/a.yaml"));
    expect(rig.scopes.get("z/y/a.yaml")?.[0]?.defaultNamespace).toBe("z");
    rig.write("z/y/a.yaml", object("a", 3));
    await rig.until(() => rig.say("z/y/a.yaml") === "a=3");
    rmSync(join(rig.dir, "z"), { recursive: true });
    await rig.until(() => rig.scopes.size === 0);
    rig.write("z/y/a.yaml", object("a", 4));
    await rig.until(() => rig.say("z/y/a.yaml") === "a=4");
  });

  it("tells of an atomic rename within 30 ms, and of nothing else", async () => {
    const rig = new Rig();
    rig.write("a.yaml", object("a", 0));
    rig.write("b.yaml", object("b", 0));
    await rig.start();
    const took: number[] = [];
    // On a busy machine most of them wait for the processor; one that does not tells.
    for (let i = 1; i <= 9 || (i <= 100 && Math.min(...took) >= 30); i += 1) {
      await rig.quiet(250);
      const start = performance.now();
      rig.replace("a.yaml", object("a", i));
      await rig.until(() => rig.say("a.yaml") === `a=${i}`);
      took.push(performance.now() - start);
    }
    expect(rig.events.slice(1).every((event) => event.type === "replace" && event.scopes.every(({ scope }) => scope === "a.yaml"))).toBe(
      true,
    );
    expect(Math.min(...took)).toBeLessThan(30);
  });

  it("says nothing when a file is touched, or a comment changes only the digest", async () => {
    const rig = new Rig();
    rig.write("a.yaml", object("a"));
    await rig.start();
    rig.replace("a.yaml", object("a"));
    await rig.quiet();
    expect(rig.events).toHaveLength(1);
    const digest = rig.scopes.get("a.yaml")?.[0]?.digest;
    rig.replace("a.yaml", `# a comment above\n${object("a")}`);
    await rig.until(() => rig.events.length === 2);
    expect(rig.scopes.get("a.yaml")?.[0]).toMatchObject({ digest, origin: { line: 2 } });
  });

  it("survives the way vim saves: the old file moved away, a new one written", async () => {
    const rig = new Rig(PATIENT);
    rig.write("a.yaml", object("a", 1));
    await rig.start();
    const path = join(rig.dir, "a.yaml");
    rig.write("4913", "");
    unlinkSync(join(rig.dir, "4913"));
    renameSync(path, `${path}~`);
    await systemClock.sleep(15);
    writeFileSync(path, "");
    await systemClock.sleep(60);
    writeFileSync(path, object("a", 2));
    unlinkSync(`${path}~`);
    await rig.until(() => rig.say("a.yaml") === "a=2");
    expect(
      rig.events.slice(1).every((event) => event.type === "replace" && event.scopes.every(({ objects }) => objects.length === 1)),
    ).toBe(true);
  });

  it("takes a burst of 1,000 files as a few events", async () => {
    const rig = await new Rig().start();
    for (let i = 0; i < 1_000; i += 1) rig.write(`ns-${i % 20}/f${i}.yaml`, object(`o${i}`));
    const [written, before] = [performance.now(), process.cpuUsage()];
    await rig.until(() => rig.scopes.size === 1_000);
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(5_000);
    // On a slow machine a burst is longer: then it is one event each time that its first change has waited long enough.
    const few = (): number => (performance.now() - written) / FILE_TIMES.maxWait;
    expect(rig.events.length).toBeLessThanOrEqual(Math.max(12, few()));
    for (const name of readdirSync(rig.dir)) rmSync(join(rig.dir, name), { recursive: true });
    await rig.until(() => rig.scopes.size === 0);
    expect(rig.events.length).toBeLessThanOrEqual(Math.max(24, few()));
  });

  it("finds by scanning what no event told", async () => {
    const outside = mkdtempSync(join(tmpdir(), "outside-"));
    onCleanUp(() => rmSync(outside, { recursive: true, force: true }));
    const rig = new Rig({ rescan: 100 });
    // A hard link is written through another name in a directory nobody watches.
    rig.write("a.yaml", object("a", 1));
    linkSync(join(rig.dir, "a.yaml"), join(outside, "other"));
    await rig.start();
    writeFileSync(join(outside, "other"), object("a", 2));
    await rig.until(() => rig.say("a.yaml") === "a=2");
  });

  it("looks at once where it is told to", async () => {
    const outside = mkdtempSync(join(tmpdir(), "outside-"));
    onCleanUp(() => rmSync(outside, { recursive: true, force: true }));
    const rig = new Rig({ rescan: 3_600_000 });
    rig.write("a.yaml", object("a", 1));
    linkSync(join(rig.dir, "a.yaml"), join(outside, "other"));
    await rig.start();
    writeFileSync(join(outside, "other"), object("a", 2));
    rig.source.rescan?.();
    await rig.until(() => rig.say("a.yaml") === "a=2");
  });
});

describe("links", () => {
  const configMap = (rig: Rig, version: string, files: Record<string, string>): void => {
    const real = join(rig.dir, `..${version}`);
    mkdirSync(real);
    for (const [name, text] of Object.entries(files)) writeFileSync(join(real, name), text);
    symlinkSync(`..${version}`, join(rig.dir, "..data_tmp"));
    renameSync(join(rig.dir, "..data_tmp"), join(rig.dir, "..data"));
  };

  it("follows a mounted ConfigMap through its swap, all files in one event", async () => {
    const rig = new Rig();
    configMap(rig, "v1", { "a.yaml": `${object("a", 1)}---\n${object("c", 1)}`, "b.yaml": object("b", 1) });
    symlinkSync("..data/a.yaml", join(rig.dir, "a.yaml"));
    symlinkSync("..data/b.yaml", join(rig.dir, "b.yaml"));
    await rig.start();
    expect(rig.values()).toEqual(new Map(Object.entries({ "a.yaml": "a=1 c=1", "b.yaml": "b=1" })));
    configMap(rig, "v2", { "a.yaml": object("a", 2), "b.yaml": object("b", 2) });
    rmSync(join(rig.dir, "..v1"), { recursive: true });
    await rig.until(() => rig.events.length > 1);
    expect(rig.values()).toEqual(new Map(Object.entries({ "a.yaml": "a=2", "b.yaml": "b=2" })));
    configMap(rig, "v3", { "a.yaml": object("a", 3), "b.yaml": object("b", 2) });
    await rig.until(() => rig.say("a.yaml") === "a=3");
    expect(rig.events).toHaveLength(3);
  });

  it("follows links that lead outside, and sees edits behind them", async () => {
    const outside = mkdtempSync(join(tmpdir(), "outside-"));
    onCleanUp(() => rmSync(outside, { recursive: true, force: true }));
    writeFileSync(join(outside, "real.yaml"), object("a", 1));
    mkdirSync(join(outside, "more"));
    writeFileSync(join(outside, "more/b.yaml"), object("b", 1));
    const rig = new Rig();
    symlinkSync(join(outside, "real.yaml"), join(rig.dir, "a.yaml"));
    symlinkSync(join(outside, "more"), join(rig.dir, "shop"));
    await rig.start();
    expect(rig.values()).toEqual(new Map(Object.entries({ "a.yaml": "a=1", "shop/b.yaml": "b=1" })));
    writeFileSync(join(outside, "real.yaml"), object("a", 2));
    writeFileSync(join(outside, "more/b.yaml"), object("b", 2));
    await rig.until(() => rig.say("a.yaml") === "a=2" && rig.say("shop/b.yaml") === "b=2");
  });

  it("follows a directory that is itself a swapped link", async () => {
    const base = mkdtempSync(join(tmpdir(), "releases-"));
    for (const n of [1, 2]) {
      mkdirSync(join(base, `r${n}/conf`), { recursive: true });
      writeFileSync(join(base, `r${n}/conf/a.yaml`), object("a", n));
    }
    symlinkSync("r1", join(base, "current"));
    const rig = new Rig({}, join(base, "current/conf"));
    await rig.start();
    expect(rig.say("a.yaml")).toBe("a=1");
    symlinkSync("r2", join(base, "next"));
    renameSync(join(base, "next"), join(base, "current"));
    await rig.until(() => rig.say("a.yaml") === "a=2");
    writeFileSync(join(base, "r2/conf/a.yaml"), object("a", 3));
    await rig.until(() => rig.say("a.yaml") === "a=3");
    rmSync(base, { recursive: true });
  });

  it("does not follow a cycle", async () => {
    const rig = new Rig();
    rig.write("ns/a.yaml", object("a"));
    symlinkSync("..", join(rig.dir, "ns/up"));
    symlinkSync(".", join(rig.dir, "self"));
    symlinkSync("loop.yaml", join(rig.dir, "loop.yaml"));
    symlinkSync("nowhere.yaml", join(rig.dir, "dangling.yaml"));
    await rig.start();
    expect(rig.values()).toEqual(new Map(Object.entries({ "loop.yaml": "!", "ns/a.yaml": "a=1" })));
    expect(rig.scopes.get("loop.yaml")?.[0]?.fault).toContain("leads back to itself");
  });
});

describe("a directory in trouble", () => {
  it("keeps what it said when the whole directory vanishes, and says so once", async () => {
    const rig = new Rig();
    rig.write("a.yaml", object("a", 1));
    await rig.start();
    renameSync(rig.dir, `${rig.dir}.away`);
    await rig.until(() => rig.source.sourceHealth().state === "failing");
    await rig.quiet();
    expect(rig.events).toHaveLength(1);
    expect(rig.warnings).toHaveLength(1);
    expect(rig.source.sourceHealth().message).toContain("does not exist");
    mkdirSync(rig.dir);
    await rig.until(() => rig.source.sourceHealth().message?.includes("empty directory") === true);
    expect(rig.say("a.yaml")).toBe("a=1");
    rig.write("a.yaml", object("a", 2));
    await rig.until(() => rig.say("a.yaml") === "a=2");
    expect(rig.source.sourceHealth().state).toBe("ok");
  });

  it("is empty while it does not exist yet", async () => {
    const rig = new Rig();
    rmSync(rig.dir, { recursive: true });
    await rig.start();
    expect(rig.events[0]).toEqual({ type: "reset", objects: [] });
    rig.write("a.yaml", object("a", 1));
    await rig.until(() => rig.say("a.yaml") === "a=1");
  });

  it("says nothing until a directory that is there can be read", async () => {
    const rig = new Rig();
    rmSync(rig.dir, { recursive: true });
    writeFileSync(rig.dir, "a file where the directory should be");
    const started = rig.start();
    await rig.until(() => rig.warnings.length > 0);
    await rig.quiet();
    expect(rig.events).toHaveLength(0);
    unlinkSync(rig.dir);
    rig.write("a.yaml", object("a", 1));
    await started;
    expect(rig.say("a.yaml")).toBe("a=1");
  });

  it("reports a file and a directory without permission, and recovers", async () => {
    const rig = new Rig();
    rig.write("a.yaml", object("a", 1));
    rig.write("ns/b.yaml", object("b", 1));
    asNobody(dirname(rig.dir));
    await rig.start();
    chmodSync(join(rig.dir, "a.yaml"), 0);
    chmodSync(join(rig.dir, "ns"), 0);
    await rig.until(() => rig.say("a.yaml") === "!" && rig.say("ns/") === "!");
    expect(rig.scopes.get("a.yaml")?.[0]?.fault).toContain("make it readable");
    expect(rig.say("ns/b.yaml")).toBe("b=1");
    chmodSync(join(rig.dir, "a.yaml"), 0o600);
    chmodSync(join(rig.dir, "ns"), 0o700);
    await rig.until(() => rig.say("a.yaml") === "a=1" && !rig.scopes.has("ns/"));
    expect(rig.say("ns/b.yaml")).toBe("b=1");
  });
});

/** Permissions do not hold root: gives the tree away and goes on as nobody until the test is over. */
function asNobody(dir: string): void {
  if (process.getuid?.() !== 0) return;
  const NOBODY = 65_534;
  for (const path of ["", ...readdirSync(dir, { recursive: true, encoding: "utf8" })]) chownSync(join(dir, path), NOBODY, NOBODY);
  process.seteuid?.(NOBODY);
  onCleanUp(() => process.seteuid?.(0));
}
