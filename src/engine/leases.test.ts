import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { createEngine } from "./engine.ts";
import { itemEngine } from "./item-engine.ts";
import type { Lease } from "./types.ts";

describe("leases", () => {
  it("keep what they reach; the rest is forgotten and computed anew when asked", () => {
    const { engine, items, define, runsOf } = itemEngine();
    const leaf = define("leaf", (key) => items.get(key)?.n ?? 0);
    const top = define("top", (key) => leaf(key) + 1);
    const lease = engine.lease("class");
    lease.run(() => top("a"));
    lease.extend(() => top("b"));
    top("c");
    expect(engine.sweep()).toBe(2);
    expect(runsOf(() => [top("a"), top("b")])).toEqual([]);
    expect(runsOf(() => top("c"))).toEqual(["top(c)", "leaf(c)"]);
    lease.run(() => leaf("b"));
    expect(engine.sweep()).toBe(5);
    expect(engine.stats()).toMatchObject({ nodes: 1, edges: 1, watched: 1, forgotten: 7 });
    lease.release();
    lease.release();
    expect(engine.sweep()).toBe(1);
    expect(engine.stats()).toMatchObject({ nodes: 0, edges: 0, watched: 0 });
  });

  it("hold on to what was read before a throw, and survive sweeping and reuse inside", () => {
    const { engine, define } = itemEngine();
    const leaf = define("leaf", (key) => key);
    const lease = engine.lease("class");
    const inner = engine.lease("inner");
    const run = () =>
      lease.run(() => {
        leaf("a");
        engine.sweep();
        inner.run(() => leaf("b"));
        lease.run(() => leaf("c"));
        throw new Error("stop");
      });
    expect(run).toThrow("stop");
    expect(engine.sweep()).toBe(1);
    expect(engine.stats().nodes).toBe(2);
  });

  it("leave nothing behind of a million absent keys", () => {
    const { engine, items, define } = itemEngine();
    const asks = define("asks", (key) => [items.get(key), items.has(key), items.list("ns", key), items.keys("ns", key)].length);
    for (let i = 0; i < 20_000; i++) asks(`absent-${i}`);
    expect(engine.stats()).toMatchObject({ nodes: 20_000, watched: 80_000 });
    expect(engine.sweep()).toBe(20_000);
    expect(engine.stats()).toMatchObject({ nodes: 0, edges: 0, watched: 0, inputs: 0 });
    for (let i = 0; i < 100; i++) [items.get(`b-${i}`), items.list("ns", `b-${i}`)];
    expect(engine.stats().watched).toBe(0);
  });

  it("say whether what was asked is as it was, computing nothing", () => {
    const { engine, items, define, runsOf } = itemEngine();
    const parity = define("parity", (key) => (items.get(key)?.n ?? 0) % 2);
    const lease = engine.lease("class");
    expect(lease.current).toBe(false);
    lease.run(() => parity("a"));
    expect(lease.current).toBe(true);
    items.set("a", { ns: "x", n: 2 });
    expect(runsOf(() => expect(lease.current).toBe(false))).toEqual([]);
    expect(runsOf(() => [...lease.refresh()])).toEqual(["parity(a)"]);
    expect(lease.current).toBe(true);
    items.set("a", { ns: "x", n: 3 });
    for (const _ of lease.refresh());
    expect(lease.current).toBe(false);
    lease.run(() => [parity("a"), items.get("a")]);
    expect(lease.current).toBe(false);
    expect(() => lease.run(() => [parity("a"), assertNever()])).toThrow("never");
    expect(lease.current).toBe(false);
  });

  it("hear nothing of a change that an eager result stops", () => {
    const { engine, items, runsOf } = itemEngine();
    let runs = 0;
    const parity = engine.query<string, number>({
      name: "parity",
      eager: true,
      compute: (key) => {
        runs += 1;
        return (items.get(key)?.n ?? 0) % 2;
      },
    });
    const top = engine.query<string, string>({ name: "top", compute: (key) => `top ${parity(key)}` });
    const lease = engine.lease("class");
    const edit = (n: number): number => {
      const before = runs;
      items.set("a", { ns: "x", n });
      return runs - before;
    };
    expect(edit(0), "nobody holds it").toBe(0);
    lease.run(() => top("a"));
    expect([edit(2), lease.current]).toEqual([1, true]);
    expect([edit(3), lease.current]).toEqual([1, false]);
    expect(runsOf(() => lease.run(() => top("a")))).toEqual([]);
    expect(top("a")).toBe("top 1");
    lease.release();
    engine.sweep();
    expect(edit(4), "nobody holds it any more").toBe(0);
  });

  it("hear of a change that marks more eager results than are settled at once", () => {
    const { engine, items } = itemEngine();
    const keys = Array.from({ length: 100 }, (_, index) => `k${index}`);
    const value = engine.query<string, number>({ name: "value", eager: true, compute: (key) => items.get(key)?.n ?? 0 });
    const sum = engine.query<string, number>({ name: "sum", compute: () => keys.reduce((total, key) => total + value(key), 0) });
    const lease = engine.lease("class");
    expect(lease.run(() => sum(""))).toBe(0);
    engine.batch(() => {
      for (const key of keys) items.set(key, { ns: "x", n: 1 });
    });
    const runs = (): number => engine.stats().queries.value?.runs ?? 0;
    expect(runs()).toBeLessThan(150);
    expect([lease.current, lease.run(() => sum("")), runs()]).toEqual([false, 100, 200]);
    items.set("k99", { ns: "x", n: 2 });
    expect([lease.current, lease.run(() => sum(""))]).toEqual([false, 101]);
  });

  it("are brought up to date from below, a result a step", () => {
    const { engine, items, define, runsOf } = itemEngine();
    const leaf = define("leaf", (key) => items.get(key)?.n ?? 0);
    const top = define("top", () => leaf("a") + leaf("b") + leaf("c"));
    const lease = engine.lease("class");
    lease.run(() => top(""));
    for (const key of ["a", "b"]) items.set(key, { ns: "x", n: 7 });
    const steps = lease.refresh()[Symbol.iterator]();
    expect([1, 2, 3].map(() => runsOf(() => steps.next()))).toEqual([["leaf(a)"], ["leaf(b)"], ["top()"]]);
    expect(steps.next().done).toBe(true);
  });

  it("look at many results in one step where none has to be run", () => {
    const { engine, items, define, runsOf } = itemEngine();
    const parity = define("parity", (key) => (items.get(key)?.n ?? 0) % 2);
    const reader = define("reader", (key) => `${key} ${parity("a")}`);
    const keys = Array.from({ length: 640 }, (_, index) => String(index));
    const top = define("top", () => keys.map((key) => reader(key)).join());
    const lease = engine.lease("class");
    lease.run(() => top(""));
    items.set("a", { ns: "x", n: 2 });
    let steps = 0;
    const runs = runsOf(() => {
      for (const _ of lease.refresh()) steps += 1;
    });
    expect([runs, lease.current]).toEqual([["parity(a)"], true]);
    expect(steps).toBe(11);
  });

  it("are swept in slices when asked to", () => {
    const { engine, define } = itemEngine();
    const leaf = define("leaf", (key) => key);
    const top = define("top", (key) => leaf(key));
    for (let i = 0; i < 10; i++) top(String(i));
    expect([engine.sweep(8), engine.sweep(8), engine.sweep(8), engine.sweep(8)]).toEqual([8, 8, 4, 0]);
    expect(engine.stats().nodes).toBe(0);
  });

  it("that read the same stay on their own: what one does is not done to another", () => {
    const { engine, items, define } = itemEngine();
    const parity = define("parity", (key) => (items.get(key)?.n ?? 0) % 2);
    const other = define("other", (key) => key.length);
    const [one, two, third] = [engine.lease("one"), engine.lease("two"), engine.lease("third")];
    for (const lease of [one, two, third]) lease.run(() => parity("a"));
    third.release();
    items.set("a", { ns: "x", n: 1 });
    for (const _ of one.refresh());
    expect([one.current, two.current, third.current]).toEqual([false, false, false]);
    expect([one.renewed(), one.current, two.current]).toEqual([1, true, false]);
    expect([two.renewed(), two.current, third.renewed()]).toEqual([1, true, undefined]);
    two.extend(() => other("b"));
    one.release();
    expect(engine.sweep()).toBe(0);
    two.release();
    expect(engine.sweep()).toBe(2);
  });

  it("that are renewed one after the other hold what is so when each is", () => {
    const { engine, items, define } = itemEngine();
    const value = define("value", (key) => items.get(key)?.n ?? 0);
    const [one, two] = [engine.lease("one"), engine.lease("two")];
    const change = (n: number): void => {
      items.set("a", { ns: "x", n });
      for (const _ of one.refresh());
      for (const _ of two.refresh());
    };
    for (const lease of [one, two]) lease.run(() => value("a"));
    change(1);
    expect(one.renewed()).toBe(1);
    change(2);
    expect([two.renewed(), two.current, one.current]).toEqual([2, true, false]);
    for (const lease of [one, two]) lease.run(() => value("a"));
    change(3);
    expect(one.renewed()).toBe(3);
    one.release();
    expect(two.renewed()).toBe(3);
    expect([engine.sweep(), two.current]).toEqual([0, true]);
  });

  it("hold, together, exactly what each of them asked for, whatever is done to them", () => {
    const step = fc.record({
      lease: fc.nat(2),
      keys: fc.array(fc.constantFrom("a", "b"), { minLength: 1, maxLength: 2 }),
      how: fc.constantFrom("run", "extend", "release", "renew", "write"),
      n: fc.nat(2),
      sweeps: fc.boolean(),
    });
    holds(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const { engine, items, define } = itemEngine();
        const value = define("value", (key) => items.get(key)?.n ?? 0);
        const held = [0, 1, 2].map((index) => ({
          lease: engine.lease(`lease ${index}`),
          seen: new Map<string, number>(),
          complete: false,
        }));
        for (const { lease: index, keys, how, n, sweeps } of steps) {
          const one = held[index];
          if (one === undefined) continue;
          const { lease, seen } = one;
          const ask = (): void => {
            for (const key of keys) seen.set(key, value(key));
          };
          if (how === "run" || how === "release") seen.clear();
          if (how === "run") lease.run(ask);
          else if (how === "extend") lease.extend(ask);
          else if (how === "release") lease.release();
          else if (how === "write") for (const key of keys) items.set(key, { ns: "x", n });
          else renew(one);
          if (how === "run" || how === "release") one.complete = how === "run";
          const now = new Map(["a", "b"].map((key) => [key, value(key)]));
          for (const { lease: each, seen: was, complete } of held)
            expect(each.current).toBe(complete && [...was].every(([key, then]) => now.get(key) === then));
          if (!sweeps) continue;
          engine.sweep();
          expect(engine.stats().nodes).toBe(new Set(held.flatMap((each) => [...each.seen.keys()])).size);
        }
      }),
      { numRuns: 500 },
    );
    function renew({ lease, seen }: { readonly lease: Lease; readonly seen: Map<string, number> }): void {
      const last = [...seen.keys()].at(-1);
      const renewed = lease.renewed();
      if (last !== undefined && typeof renewed === "number") seen.set(last, renewed);
    }
  });

  it("may not be used, nor may sweep, inside a query", () => {
    const { engine, define } = itemEngine();
    const lease = engine.lease("one");
    expect(() => define("leasing", () => lease.run(() => 1))("")).toThrow("lease one inside a query");
    expect(() => define("sweeping", () => engine.sweep())("")).toThrow("sweep inside a query");
  });

  it("give the last result alone where it alone changed", () => {
    const engine = createEngine();
    const rows = engine.table<number>({ name: "rows" });
    for (const key of ["a", "b"]) rows.set(key, 1);
    const row = engine.query<string, number>({
      name: "row",
      compute: (key) => {
        const value = rows.get(key) ?? 0;
        if (value < 0) throw new Error("below zero");
        return value;
      },
    });
    const lease = engine.lease("two");
    const ask = (): number => lease.run(() => row("a") * 0 + row("b"));
    const renewed = (): unknown => {
      for (const _ of lease.refresh());
      return lease.renewed();
    };
    ask();
    expect(renewed()).toBe(undefined);
    rows.set("b", 2);
    expect(lease.renewed(), "not up to date").toBe(undefined);
    expect(renewed()).toBe(2);
    expect(lease.current).toBe(true);
    rows.set("a", 3);
    expect(renewed(), "not the last one").toBe(undefined);
    ask();
    engine.batch(() => {
      rows.set("a", 4);
      rows.set("b", 4);
    });
    expect(renewed(), "both").toBe(undefined);
    ask();
    rows.set("b", -1);
    expect(renewed(), "it failed").toBe(undefined);
  });
});

function assertNever(): never {
  throw new Error("never");
}
