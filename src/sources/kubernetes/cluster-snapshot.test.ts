import { appendFile, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { tempDir } from "../../../test/support/cleanup.ts";
import { manualClock } from "../../../test/support/manual-clock.ts";
import { silentLog } from "../../base/log.ts";
import { createClusterSnapshot } from "./cluster-snapshot.ts";

describe("what a cluster said last", () => {
  let path: string;
  beforeEach(async () => {
    path = join(await tempDir(), "state.jsonl");
  });
  const open = (server = "https://a.test") => createClusterSnapshot(path, { server, clock: manualClock(), log: silentLog });
  const loaded = async () => Object.fromEntries((await open().load())?.objects ?? []);

  it("is there after a restart, with everything that changed since", async () => {
    const snapshot = open();
    const state = new Map([
      ["Service/shop/web", '{"a":1}'],
      ["Service/shop/old", '{"a":2}'],
    ]);
    snapshot.save(state.keys(), state);
    await snapshot.flush();
    const whole = await readFile(path, "utf8");
    state.set("Service/shop/web", '{"a":3}').delete("Service/shop/old");
    snapshot.save(["Service/shop/web", "Service/shop/old"], state);
    await snapshot.flush();
    expect(await loaded()).toEqual({ "Service/shop/web": { a: 3 } });
    expect((await readFile(path, "utf8")).startsWith(whole)).toBe(true);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it("counts without a change that was not written to its end", async () => {
    const snapshot = open();
    const state = new Map([["Service/shop/web", '{"a":1}']]);
    snapshot.save(state.keys(), state);
    await snapshot.flush();
    await appendFile(path, '{"at":5,"lines":2}\n["Service/shop/web"]\n["Service/sh');
    expect(await loaded()).toEqual({ "Service/shop/web": { a: 1 } });
  });

  it("is written anew when most of what was written is no longer true", async () => {
    const snapshot = open();
    const state = new Map([["Service/shop/web", "0"]]);
    snapshot.save(state.keys(), state);
    for (let turn = 1; turn <= 1_100; turn++) {
      state.set("Service/shop/web", String(turn));
      snapshot.save(["Service/shop/web"], state);
      await snapshot.flush();
    }
    expect(await loaded()).toEqual({ "Service/shop/web": 1_100 });
    expect((await readFile(path, "utf8")).split("\n").length).toBeLessThan(500);
  });

  it("is written anew when somebody took the file away", async () => {
    const snapshot = open();
    const state = new Map([["Service/shop/web", "1"]]);
    snapshot.save(state.keys(), state);
    await snapshot.flush();
    await rm(path);
    state.set("Service/shop/api", "2");
    snapshot.save(["Service/shop/api"], state);
    await snapshot.flush();
    expect(await loaded()).toEqual({ "Service/shop/web": 1, "Service/shop/api": 2 });
  });

  it("of another server, or of a file that is damaged, is nothing", async () => {
    const snapshot = open();
    const state = new Map([["Service/shop/web", "{}"]]);
    snapshot.save(state.keys(), state);
    await snapshot.flush();
    expect(await open("https://b.test").load()).toBeUndefined();
    await writeFile(path, (await readFile(path, "utf8")).replace("{}", "{"));
    expect(await open().load()).toBeUndefined();
  });

  it("of a process before is replaced by what is true now", async () => {
    await writeFile(path, '{"server":"https://a.test","at":1}\n["Service/shop/gone",{}]\n');
    const snapshot = open();
    const state = new Map([["Service/shop/web", "{}"]]);
    snapshot.save(state.keys(), state);
    await snapshot.flush();
    expect(await loaded()).toEqual({ "Service/shop/web": {} });
  });
});
