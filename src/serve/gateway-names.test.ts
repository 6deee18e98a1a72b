import { describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../base/log.ts";
import { createGatewayNames, type ResolvedName } from "./gateway-names.ts";

function rig(answers: Record<string, ResolvedName | Error>) {
  const clock = manualClock();
  const found: string[] = [];
  const asked: string[] = [];
  const names = createGatewayNames({
    clock,
    log: silentLog,
    resolve: async (name) => {
      asked.push(name);
      const answer = answers[name] ?? new Error("nobody knows");
      if (answer instanceof Error) throw answer;
      return answer;
    },
    found: (name, addresses) => found.push(`${name}: ${addresses.join(" ")}`),
  });
  /** Turns the hands and lets answers arrive. */
  const passed = async (ms: number): Promise<readonly string[]> => {
    clock.advance(ms);
    for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
    return [...found.splice(0), ...asked.splice(0).map((name) => `? ${name}`)];
  };
  return { answers, names, passed };
}

const answer = (ttlMs: number, ...addresses: string[]): ResolvedName => ({ addresses, ttlMs });

describe("names of gateways", () => {
  it("are resolved when they are first named, and again when the answer runs out", async () => {
    const { answers, names, passed } = rig({ a: answer(60_000, "192.0.2.2", "192.0.2.1") });
    names.follow(["a"]);
    await names.asked();
    expect(await passed(0)).toEqual(["a: 192.0.2.1 192.0.2.2", "? a"]);
    expect(await passed(59_000)).toEqual([]);
    expect(await passed(1_000)).toEqual(["? a"]);
    answers.a = answer(60_000, "192.0.2.3");
    expect(await passed(60_000)).toEqual(["a: 192.0.2.3", "? a"]);
    names.follow(["a"]);
    expect(await passed(0)).toEqual([]);
  });

  it("are not asked about more often than twice a minute, nor less than once an hour", async () => {
    const { names, passed } = rig({ short: answer(1_000, "192.0.2.1"), long: answer(86_400_000, "192.0.2.2") });
    names.follow(["short", "long"]);
    await passed(0);
    expect(await passed(29_000)).toEqual([]);
    expect(await passed(1_000)).toEqual(["? short"]);
    names.follow(["long"]);
    expect(await passed(0)).toEqual(["short: "]);
    expect(await passed(3_570_000)).toEqual(["? long"]);
  });

  it("keep their last addresses when DNS fails or knows none", async () => {
    const { answers, names, passed } = rig({ a: answer(60_000, "192.0.2.1") });
    names.follow(["a"]);
    await passed(0);
    answers.a = new Error("SERVFAIL");
    expect(await passed(60_000)).toEqual(["? a"]);
    answers.a = answer(60_000);
    expect(await passed(30_000)).toEqual(["? a"]);
    answers.a = answer(60_000, "192.0.2.9");
    expect(await passed(60_000)).toEqual(["a: 192.0.2.9", "? a"]);
  });

  it("that never had an address are tried again soon", async () => {
    const { answers, names, passed } = rig({});
    names.follow(["a"]);
    await names.asked();
    expect(await passed(0)).toEqual(["? a"]);
    answers.a = answer(60_000, "192.0.2.1");
    expect(await passed(5_000)).toEqual(["a: 192.0.2.1", "? a"]);
  });

  it("that nobody names any more are forgotten, also while an answer is on its way", async () => {
    const { names, passed } = rig({ a: answer(60_000, "192.0.2.1") });
    names.follow(["a"]);
    names.follow([]);
    expect(await passed(0)).toEqual(["a: ", "? a"]);
    expect(await passed(3_600_000)).toEqual([]);
  });
});
