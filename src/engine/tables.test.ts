import { describe, expect, it } from "vitest";
import { createEngine, EngineInvariantError } from "./index.ts";
import { type Item, itemEngine } from "./item-engine.ts";

describe("tables", () => {
  it("count no-change writes as no change", () => {
    const engine = createEngine();
    const table = engine.table<Item>({ name: "t", same: (a, b) => a.n === b.n });
    table.set("a", { ns: "x", n: 1 });
    const { revision } = engine;
    table.set("a", { ns: "other", n: 1 });
    table.delete("none");
    expect(engine.revision).toBe(revision);
    expect(table.get("a")?.ns).toBe("x");
    // @ts-expect-error: undefined is no row
    expect(() => table.set("a", undefined)).toThrow(EngineInvariantError);
  });

  it("list rows in key order, as one instance until a member changes", () => {
    const { items } = itemEngine();
    for (const key of ["c", "a", "b"]) items.set(key, { ns: "x", n: key.charCodeAt(0) });
    const list = items.list("ns", "x");
    expect(list.map((item) => item.n)).toEqual([97, 98, 99]);
    items.set("d", { ns: "y", n: 1 });
    expect(items.list("ns", "x")).toBe(list);
    expect(items.keys("ns", "x")).toEqual(["a", "b", "c"]);
    expect(items.indexKeys("ns")).toEqual(["x", "y"]);
    expect(items.all().length).toBe(4);
    items.set("b", { ns: "x", n: 0 });
    expect(items.list("ns", "x").map((item) => item.n)).toEqual([97, 0, 99]);
    expect(list.map((item) => item.n)).toEqual([97, 98, 99]);
    expect(items.list("ns", "none")).toBe(items.list("ns", "nothing"));
    expect(() => items.list("nope", "x")).toThrow("table items has no index nope");
    expect(items.size).toBe(4);
  });

  it("tell apart a change of content, of membership and of the set of index keys", () => {
    const { items, define, runsOf } = itemEngine();
    const list = define("list", (ns) => items.list("ns", ns));
    const keys = define("keys", (ns) => items.keys("ns", ns));
    const spaces = define("spaces", () => items.indexKeys("ns"));
    const has = define("has", (key) => items.has(key));
    const all = define("all", () => items.all());
    const ask = () => [list("x"), keys("x"), spaces(""), has("a"), all("")];
    items.set("a", { ns: "x", n: 1 });
    ask();
    items.set("a", { ns: "x", n: 2 });
    expect(runsOf(ask)).toEqual(["list(x)", "all()"]);
    items.set("b", { ns: "x", n: 2 });
    expect(runsOf(ask)).toEqual(["list(x)", "keys(x)", "all()"]);
    items.set("c", { ns: "y", n: 2 });
    expect(runsOf(ask)).toEqual(["spaces()", "all()"]);
    items.delete("a");
    expect(runsOf(ask)).toEqual(["list(x)", "keys(x)", "has(a)", "all()"]);
    items.set("b", { ns: "y", n: 3 });
    expect(runsOf(ask)).toEqual(["list(x)", "keys(x)", "spaces()", "all()"]);
  });

  it("record one read for a list, also an empty one", () => {
    const { engine, items, define } = itemEngine();
    const count = define("count", (ns) => items.list("ns", ns).length);
    expect(count("x")).toBe(0);
    expect(engine.stats().edges).toBe(1);
    items.set("a", { ns: "x", n: 1 });
    expect(count("x")).toBe(1);
  });

  it("refuse writes inside a query", () => {
    const { items, define } = itemEngine();
    const naughty = define("naughty", () => items.set("a", { ns: "x", n: 1 }));
    expect(() => naughty("")).toThrow("write to table items inside a query");
    expect(items.size).toBe(0);
  });
});

describe("batches", () => {
  it("are one revision, and none when all is as before", () => {
    const { engine, items } = itemEngine();
    const row = { ns: "x", n: 1 };
    const load = () => {
      items.set("a", row);
      items.set("b", row);
    };
    expect(engine.batch(load)).toBe(true);
    expect(engine.revision).toBe(1);
    const there = () => {
      items.delete("a");
      items.set("a", row);
    };
    expect(engine.batch(there)).toBe(false);
    expect(engine.batch(() => void engine.batch(() => items.delete("a")))).toBe(true);
    expect(engine.revision).toBe(2);
  });

  it("are undone when they throw", () => {
    const { engine, items, define } = itemEngine();
    items.set("a", { ns: "x", n: 1 });
    const list = define("list", () => items.list("ns", "x").map((item) => item.n));
    const broken = () =>
      engine.batch(() => {
        items.set("a", { ns: "y", n: 2 });
        items.set("b", { ns: "x", n: 3 });
        expect(list("")).toEqual([3]);
        throw new Error("stop");
      });
    expect(broken).toThrow("stop");
    expect([engine.revision, items.size, list("")]).toEqual([1, 1, [1]]);
  });
});
