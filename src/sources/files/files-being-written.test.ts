import { appendFileSync, linkSync, mkdtempSync, rmSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { systemClock } from "../../base/clock.ts";
import { nextTurn } from "../../base/slice.ts";
import { cleanUp, object, onCleanUp, PATIENT, Rig } from "./directory-rig.ts";

afterEach(cleanUp);

describe("files being written", () => {
  it("never takes a file in the middle of a rewrite for its content", async () => {
    const rig = new Rig(PATIENT);
    const text = (value: number): string => Array.from({ length: 20 }, (_, i) => object(`o${i}`, value)).join("---\n");
    rig.write("a.yaml", text(1));
    await rig.start();
    const path = join(rig.dir, "a.yaml");
    truncateSync(path);
    const parts = text(2).match(/[\s\S]{1,200}/g) ?? [];
    for (const part of parts.slice(0, -2)) {
      appendFileSync(path, part);
      await systemClock.sleep(4);
    }
    // Several documents at once: without the last of them alone the file would look whole.
    appendFileSync(path, parts.slice(-2).join(""));
    await rig.until(() => rig.say("a.yaml").startsWith("o0=2"));
    for (const event of rig.events) {
      const objects = event.type === "reset" ? event.objects : event.scopes.flatMap((scope) => scope.objects);
      expect(objects).toHaveLength(20);
      expect(objects.every((raw) => raw.fault === undefined)).toBe(true);
    }
  });

  it.runIf(process.platform === "linux")("passes on at once what was moved into its place, new or in place of another", async () => {
    const rig = new Rig({ settle: 3_600_000 });
    rig.write("a.yaml", object("a", 1));
    const outside = mkdtempSync(join(tmpdir(), "outside-"));
    onCleanUp(() => rmSync(outside, { recursive: true, force: true }));
    utimesSync(join(rig.dir, "a.yaml"), 1, 1);
    await rig.start();
    for (const value of [2, 3]) {
      rig.replace("a.yaml", object("a", value));
      await rig.until(() => rig.say("a.yaml") === `a=${value}`);
    }
    writeFileSync(join(outside, "b"), object("b"));
    linkSync(join(outside, "b"), join(rig.dir, "b.yaml"));
    await rig.until(() => rig.say("b.yaml") === "b=1");
  });

  it("waits for what is written in its place, also where it was not there before", async () => {
    const rig = new Rig({ settle: 25, maxWait: 0 });
    await rig.start();
    for (let round = 0; round < 40; round += 1) {
      const path = join(rig.dir, `f${round}.yaml`);
      appendFileSync(path, object("a", round));
      // The second piece comes while the first is looked at, or when it has been read.
      for (let turn = 0; turn < round / 2; turn += 1) await nextTurn();
      appendFileSync(path, `---\n${object("b", round)}`);
      await rig.until(() => rig.scopes.size === round + 1);
    }
    const told = rig.events.flatMap((event) => (event.type === "reset" ? [] : event.scopes));
    expect(told.every(({ objects }) => objects.length === 2)).toBe(true);
  });

  it("believes in the end that a file was emptied", async () => {
    const rig = new Rig({ empty: 100 });
    rig.write("a.yaml", object("a"));
    await rig.start();
    truncateSync(join(rig.dir, "a.yaml"));
    await rig.until(() => rig.scopes.size === 0);
  });

  it("passes on a broken document and its neighbours", async () => {
    const rig = new Rig();
    rig.write("a.yaml", `${object("a")}---\n${object("b")}---\n${object("c")}`);
    await rig.start();
    rig.replace("a.yaml", `${object("a")}---\nkind: Thing\n  bad: [\n---\n${object("c", 2)}`);
    await rig.until(() => rig.say("a.yaml") === "a=1 ! c=2");
    expect(rig.scopes.get("a.yaml")?.[1]).toMatchObject({ fault: expect.stringContaining("not valid YAML"), origin: { line: 6 } });
  });
});
