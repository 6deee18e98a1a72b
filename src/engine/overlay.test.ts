import { describe, expect, it } from "vitest";
import { createEngine, EngineInvariantError, type OverlayChange, type Query } from "./index.ts";
import { type Item, itemEngine } from "./item-engine.ts";

describe("provenance", () => {
  it("names rows, absences, lists and names read, each once", () => {
    const { engine, items, define } = itemEngine();
    const leaf = define("leaf", (key) => [items.get(key), items.has(key)]);
    const top = define("top", () => [
      leaf("a"),
      leaf("b"),
      items.list("ns", "x"),
      items.keys("odd", "yes"),
      items.indexKeys("ns"),
      items.all(),
    ]);
    items.set("a", { ns: "x", n: 1 });
    expect(engine.provenance(top, "")).toEqual([
      { table: "items", key: "a", read: "row" },
      { table: "items", key: "b", read: "absent" },
      { table: "items", index: "*", key: "*", read: "list" },
      { table: "items", index: "ns", key: "*", read: "keys" },
      { table: "items", index: "ns", key: "x", read: "list" },
      { table: "items", index: "odd", key: "yes", read: "keys" },
    ]);
    expect(() => createEngine().provenance(top, "")).toThrow("query top is of another engine");
  });
});

describe("overlays", () => {
  it("show the change, share what it does not reach, and leave no trace", () => {
    const { engine, items, define, runsOf } = itemEngine();
    const leaf = define("leaf", (key) => ({ n: items.get(key)?.n }));
    const spaces = define("spaces", () => items.indexKeys("ns"));
    items.set("a", { ns: "x", n: 1 });
    items.set("b", { ns: "x", n: 2 });
    const [b, before] = [leaf("b"), [leaf("a"), spaces("")]];
    const stats = engine.stats();
    const changes: OverlayChange[] = [
      { table: items, key: "a", value: { ns: "y", n: 5 } },
      { table: items, key: "c", value: { ns: "z", n: 6 } },
    ];
    const look = () => {
      expect([leaf("a").n, leaf("c").n, spaces("")]).toEqual([5, 6, ["x", "y", "z"]]);
      expect(leaf("b")).toBe(b);
      expect([items.get("a")?.n, items.has("c"), items.keys("ns", "x"), items.all().length]).toEqual([5, true, ["b"], 3]);
      expect(items.list("ns", "y")).toBe(items.list("ns", "y"));
    };
    expect(runsOf(() => engine.overlay(changes, look))).toEqual(["leaf(a)", "leaf(c)", "spaces()"]);
    expect(engine.stats()).toEqual(stats);
    expect(runsOf(() => expect([leaf("a"), spaces("")]).toEqual(before))).toEqual([]);
  });

  it("give the cached instance where a computed result is the same", () => {
    const { engine, items, define } = itemEngine();
    const parity = define("parity", (key) => ({ odd: (items.get(key)?.n ?? 0) % 2 }));
    items.set("a", { ns: "x", n: 1 });
    const value = parity("a");
    expect(engine.overlay([{ table: items, key: "a", value: { ns: "x", n: 3 } }], () => parity("a"))).toBe(value);
  });

  it("stop a change where a result is the same, however much stands above", () => {
    const { engine, items, define, runsOf } = itemEngine();
    const parity = define("parity", (key) => ({ odd: (items.get(key)?.n ?? 0) % 2 }));
    const middle = define("middle", (key) => [parity(key)]);
    const top = define("top", () => [middle("a"), items.get("b")?.n]);
    items.set("a", { ns: "x", n: 1 });
    const value = top("");
    const ran = (n: number) =>
      runsOf(() =>
        engine.overlay([{ table: items, key: "a", value: { ns: "x", n } }], (runs) => {
          expect(top("") === value).toBe(n === 3);
          expect(runs().get("parity")).toBe(1);
        }),
      );
    expect(ran(3)).toEqual(["parity(a)"]);
    expect(ran(4)).toEqual(["parity(a)", "middle(a)", "top()"]);
    items.set("a", { ns: "x", n: 5 });
    expect(ran(4)).toEqual(["top()", "middle(a)", "parity(a)"]);
  });

  it("find a cycle that only the change makes, whoever is asked first", () => {
    const { engine, items, define } = itemEngine();
    const low: Query<string, unknown> = define("low", () => ((items.get("a")?.n ?? 0) > 1 ? high("") : 0));
    const high: Query<string, unknown> = define("high", () => [low("")]);
    const above = define("above", () => [high("")]);
    items.set("a", { ns: "x", n: 1 });
    above("");
    const changes: OverlayChange[] = [{ table: items, key: "a", value: { ns: "x", n: 2 } }];
    const errors = [above, high, low].map((first) =>
      engine.overlay(changes, () => {
        first.try("");
        return [low, high, above].map((one) => {
          const result = one.try("");
          return result.ok ? "fine" : result.error.message;
        });
      }),
    );
    expect(new Set(errors.map((one) => JSON.stringify(one))).size).toBe(1);
    expect(errors[0]?.[0]).toMatch(/cycle/);
    expect(above("")).toEqual([[0]]);
  });

  it("read tables they do not change, and delete", () => {
    const { engine, items, define } = itemEngine();
    const other = engine.table<number>({ name: "other" });
    other.set("k", 7);
    items.set("a", { ns: "x", n: 1 });
    const both = define("both", () => [other.all(), other.get("k"), items.all(), items.indexKeys("ns")]);
    expect(engine.overlay([{ table: items, key: "a", value: undefined }], () => both(""))).toEqual([[7], 7, [], []]);
  });

  it("refuse nesting, writes, leases and sweeps, and end when their function throws", () => {
    const { engine, items, define } = itemEngine();
    const lease = engine.lease("l");
    const leaf = define("leaf", () => 1);
    const inside: (() => unknown)[] = [
      () => engine.overlay([], () => 1),
      () => items.delete("a"),
      () => lease.run(() => 1),
      () => engine.sweep(),
      () => engine.provenance(leaf, ""),
      () => engine.batch(() => undefined),
    ];
    for (const fn of inside) expect(() => engine.overlay([], fn)).toThrow(EngineInvariantError);
    const foreign = createEngine().table<Item>({ name: "items" });
    expect(() => engine.overlay([{ table: foreign, key: "a", value: undefined }], () => 1)).toThrow("another engine");
    items.set("a", { ns: "x", n: 1 });
    expect(items.size).toBe(1);
  });
});
