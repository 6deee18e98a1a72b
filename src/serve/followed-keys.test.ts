import { describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import type { Log } from "../base/log.ts";
import type { KeyLocation } from "../generate/policies/key-location.ts";
import { followKeys } from "./followed-keys.ts";

const place = (uri: string): KeyLocation => ({ id: `uri ${uri}`, uri, timeoutMs: 1 });
const MINUTE = 60_000;

function follower() {
  const clock = manualClock();
  const answers = new Map<string, string>();
  const keys = new Map<string, string>();
  const lines: string[] = [];
  const state = { asked: 0, running: 0, most: 0 };
  const note = (_: unknown, text?: string): void => void lines.push(text ?? "");
  const log = { info: note, warn: note, error: note, debug: note } as unknown as Log;
  const followed = followKeys({
    clock,
    log,
    refreshMs: 20 * MINUTE,
    async read({ uri }) {
      state.asked += 1;
      state.running += 1;
      state.most = Math.max(state.most, state.running);
      await Promise.resolve();
      state.running -= 1;
      const answer = answers.get(uri);
      if (answer === undefined) throw new Error("no answer");
      return answer;
    },
    found: (id, text) => void (text === undefined ? keys.delete(id) : keys.set(id, text)),
  });
  const pass = async (ms: number, stepMs = 500): Promise<void> => {
    for (let left = ms; left > 0; left -= Math.min(left, stepMs)) {
      clock.advance(Math.min(left, stepMs));
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    }
  };
  return { ...followed, answers, keys, lines, state, pass };
}

describe("followed keys", () => {
  it("are asked for again at their time, and told when they differ", async () => {
    const { follow, asked, answers, keys, state, pass } = follower();
    answers.set("a", "one");
    follow([place("a")]);
    await asked();
    expect([...keys]).toEqual([["uri a", "one"]]);
    await pass(20 * MINUTE - 500);
    expect(state.asked).toBe(1);
    answers.set("a", "two");
    await pass(1_000);
    expect([state.asked, keys.get("uri a")]).toEqual([2, "two"]);
  });

  it("that do not come are asked for soon, then less often, and one line tells", async () => {
    const { follow, asked, answers, keys, lines, state, pass } = follower();
    follow([place("a")]);
    await asked();
    expect(lines).toEqual(["the keys of a token issuer cannot be fetched; its tokens are refused"]);
    await pass(1_000 + 2_000 + 4_000);
    expect(state.asked).toBe(4);
    await pass(10 * MINUTE);
    expect(state.asked).toBeLessThan(20);
    answers.set("a", "one");
    await pass(MINUTE + 500);
    expect(keys.get("uri a")).toBe("one");
    expect(lines).toHaveLength(2);
  });

  it("outlive failures for a week and no longer", async () => {
    const { follow, asked, answers, keys, lines, pass } = follower();
    answers.set("a", "one");
    follow([place("a")]);
    await asked();
    answers.delete("a");
    await pass(21 * MINUTE);
    expect([keys.size, lines]).toEqual([1, ["the keys of a token issuer cannot be fetched; the keys fetched last stay in force"]]);
    await pass(6 * 24 * 60 * MINUTE, MINUTE);
    expect(keys.size).toBe(1);
    await pass(24 * 60 * MINUTE, MINUTE);
    expect(keys.size).toBe(0);
  });

  it("that nobody wants any more are forgotten, and asked for no more", async () => {
    const { follow, asked, answers, keys, state, pass } = follower();
    answers.set("a", "one").set("b", "two");
    follow([place("a"), place("b")]);
    await asked();
    follow([place("b")]);
    expect([...keys.keys()]).toEqual(["uri b"]);
    await pass(20 * MINUTE);
    expect(state.asked).toBe(3);
  });

  it("are asked for a few at a time, however many there are", async () => {
    const { follow, asked, answers, keys, state } = follower();
    const places = Array.from({ length: 100 }, (_, index) => `p${index}`);
    for (const uri of places) answers.set(uri, uri);
    follow(places.map(place));
    await asked();
    expect([keys.size, state.most]).toEqual([100, 16]);
  });
});
