import { describe, expect, it } from "vitest";
import { EngineInvariantError, EngineRecheckError, type Query, QueryCycleError, type QueryDef, QueryError } from "./index.ts";
import { itemEngine } from "./item-engine.ts";

describe("queries", () => {
  it("compute on demand, once, and again only after a change of what they read", () => {
    const { items, define, runsOf } = itemEngine();
    const n = define("n", (key) => items.get(key)?.n);
    items.set("a", { ns: "x", n: 1 });
    expect(runsOf(() => n("a"))).toEqual(["n(a)"]);
    expect(runsOf(() => n("a"))).toEqual([]);
    expect(runsOf(() => items.set("a", { ns: "x", n: 2 }))).toEqual([]);
    items.set("b", { ns: "x", n: 9 });
    expect(runsOf(() => expect(n("a")).toBe(2))).toEqual(["n(a)"]);
  });

  it("keep the old value and stop the change when the new one is the same", () => {
    const { engine, items, define, runsOf } = itemEngine();
    const parity = define("parity", (key) => ({ odd: (items.get(key)?.n ?? 0) % 2 }));
    const above = define("above", (key) => [parity(key)]);
    items.set("a", { ns: "x", n: 1 });
    const [value, top] = [parity("a"), above("a")];
    items.set("a", { ns: "x", n: 3 });
    expect(runsOf(() => expect(above("a")).toBe(top))).toEqual(["parity(a)"]);
    expect(parity("a")).toBe(value);
    expect(engine.stats().queries.parity).toEqual({ nodes: 1, runs: 2, hits: 2, cutoffs: 1, errors: 0 });
  });

  it("take a custom same", () => {
    const { engine, items } = itemEngine();
    const rough = engine.query({ name: "rough", compute: (key: string) => items.get(key)?.n ?? 0, same: (a, b) => Math.abs(a - b) < 5 });
    items.set("a", { ns: "x", n: 10 });
    expect(rough("a")).toBe(10);
    items.set("a", { ns: "x", n: 12 });
    expect(rough("a")).toBe(10);
    items.set("a", { ns: "x", n: 20 });
    expect(rough("a")).toBe(20);
  });

  it("re-run when an absent row appears", () => {
    const { items, define } = itemEngine();
    const n = define("n", (key) => items.get(key)?.n ?? "none");
    expect(n("a")).toBe("none");
    items.set("a", { ns: "x", n: 1 });
    expect(n("a")).toBe(1);
    items.delete("a");
    expect(n("a")).toBe("none");
  });

  it("forget reads of an earlier run", () => {
    const { items, define, runsOf } = itemEngine();
    const pick = define("pick", () => (items.has("switch") ? items.get("a")?.n : items.get("b")?.n));
    items.set("switch", { ns: "x", n: 0 });
    pick("");
    items.delete("switch");
    pick("");
    items.set("a", { ns: "x", n: 7 });
    expect(runsOf(() => pick(""))).toEqual([]);
  });

  it("intern keys by id, and require one for object keys", () => {
    const { engine } = itemEngine();
    let runs = 0;
    const sum = engine.query({
      name: "sum",
      id: (key: { a: number; b: number }) => `${key.a},${key.b}`,
      compute: ({ a, b }) => ++runs && a + b,
    });
    expect([sum({ a: 1, b: 2 }), sum({ a: 1, b: 2 }), sum({ a: 2, b: 2 })]).toEqual([3, 3, 4]);
    expect(runs).toBe(2);
    // @ts-expect-error: object keys need an id
    engine.query({ name: "refused", compute: (key: { a: number }) => key.a });
    const untyped = engine.query as <K, V>(def: QueryDef<K, V>) => Query<K, V>;
    const bad = untyped({ name: "bad", compute: (key: { a: number }) => key.a });
    expect(() => bad({ a: 1 })).toThrow(EngineInvariantError);
  });

  it("tell keys of different types apart, and have undefined as a value", () => {
    const { engine } = itemEngine();
    const type = engine.query({
      name: "type",
      compute: (key: string | number | undefined) => (key === undefined ? undefined : typeof key),
    });
    expect([type(1), type("1"), type(undefined), type(undefined)]).toEqual(["number", "string", undefined, undefined]);
    expect(engine.stats().queries.type).toMatchObject({ nodes: 3, runs: 3, hits: 1 });
  });

  it("are defined once per name", () => {
    const { engine, define } = itemEngine();
    define("one", () => 1);
    expect(() => define("one", () => 2)).toThrow("query one is defined twice");
    expect(() => engine.table({ name: "items" })).toThrow("table items is defined twice");
  });
});

describe("errors", () => {
  it("are values: cached, passed on unchanged, cut off by message, healed by a change", () => {
    const { engine, items, define, runsOf } = itemEngine();
    const strict = define("strict", (key) => {
      const item = items.get(key);
      if (item === undefined || item.n < 0) throw new Error("bad item");
      return item.n;
    });
    const above = define("above", (key) => strict(key) + 1);
    const safe = define("safe", (key) => strict.try(key).ok);
    expect(() => above("a")).toThrow(new QueryError("strict", "a", new Error("bad item")));
    expect(runsOf(() => expect(() => above("a")).toThrow("query strict(a) failed: bad item"))).toEqual([]);
    expect(safe("a")).toBe(false);
    const first = strict.try("a");
    items.set("a", { ns: "x", n: -1 });
    expect(runsOf(() => [above.try("a"), safe("a")])).toEqual(["strict(a)"]);
    expect(strict.try("a")).toEqual(first);
    items.set("a", { ns: "x", n: 1 });
    expect([above("a"), safe("a"), strict.try("a")]).toEqual([2, true, { ok: true, value: 1 }]);
    expect(engine.stats()).toMatchObject({ errors: 3, cutoffs: 1 });
  });

  it("may be anything thrown", () => {
    const { define } = itemEngine();
    const odd = define("odd", () => {
      throw "a string";
    });
    expect(odd.try("")).toMatchObject({ ok: false, error: { message: "query odd() failed: a string", cause: "a string" } });
  });

  it("do not remember a stack overflow, and the engine survives it", () => {
    const { items, define } = itemEngine();
    const down: Query<string, number> = define("down", (key) =>
      Number(key) === 0 ? (items.get("a")?.n ?? 0) : down(String(Number(key) - 1)) + 1,
    );
    expect(() => down("100000")).toThrow(RangeError);
    for (let i = 0; i <= 100_000; i += 500) down(String(i));
    expect(down("100000")).toBe(100_000);
    items.set("b", { ns: "x", n: 1 }); // not "inside a query"
  });
});

describe("cycles", () => {
  it("give every member the same error, whoever is asked first and whoever catches", () => {
    const messages = ["a", "b", "c"].map((start) => {
      const { define } = itemEngine();
      const ring: Record<string, Query<string, unknown>> = {};
      ring.c = define("c", () => ring.a?.(""));
      ring.b = define("b", () => ring.c?.(""));
      ring.a = define("a", () => ring.b?.try("").ok);
      const first = ring[start]?.try("");
      expect(first).toMatchObject({ ok: false, error: { chain: ["a()", "b()", "c()"] } });
      expect(() => ring.a?.("")).toThrow(QueryCycleError);
      return ["a", "b", "c"].map((name) => JSON.stringify(ring[name]?.try("")));
    });
    expect(new Set(messages.flat()).size).toBe(1);
  });

  it("name the inner ring, smallest first, where there are several", () => {
    const { define } = itemEngine();
    const a: Query<string, unknown> = define("a", () => c(""));
    const b: Query<string, unknown> = define("b", () => [c.try("").ok, a("")]);
    const c: Query<string, unknown> = define("c", () => b(""));
    for (const one of [b, a, c]) expect(one.try("")).toMatchObject({ ok: false, error: { message: "query cycle: b() → c() → b()" } });
  });

  it("heal when a change breaks them", () => {
    const { items, define } = itemEngine();
    const left: Query<string, number> = define("left", () => (items.has("cut") ? 1 : right("") + 1));
    const right: Query<string, number> = define("right", () => left("") + 1);
    const reader = define("reader", () => right.try("").ok);
    expect(reader("")).toBe(false);
    expect(() => left("")).toThrow("query cycle: left() → right() → left()");
    items.set("cut", { ns: "x", n: 0 });
    expect([reader(""), left(""), right("")]).toEqual([true, 1, 2]);
    items.delete("cut");
    expect(reader("")).toBe(false);
  });
});

describe("recheck", () => {
  it("finds a query that reads what the engine cannot see, at any depth, and caches no such error", () => {
    const { define } = itemEngine(true);
    let hidden = 1;
    const leaf = define("leaf", () => hidden);
    const top = define("top", () => leaf("") * 0);
    expect([top(""), top("")]).toEqual([0, 0]);
    hidden = 2;
    expect(() => leaf("")).toThrow(EngineRecheckError);
    hidden = 1;
    expect(leaf("")).toBe(1);
  });

  it("counts no runs and keeps the graph as it is", () => {
    const { engine, items, define } = itemEngine(true);
    const leaf = define("leaf", (key) => items.get(key)?.n ?? 0);
    const top = define("top", () => leaf("a") + leaf("b"));
    items.set("a", { ns: "x", n: 1 });
    for (let i = 0; i < 3; i++) expect(top("")).toBe(1);
    expect(engine.stats()).toMatchObject({ nodes: 3, runs: 3, edges: 4 });
  });
});
