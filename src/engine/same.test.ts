import { describe, expect, it } from "vitest";
import { same } from "./same.ts";

class Thing {
  readonly n = 1;
}

describe("same", () => {
  const table: readonly [name: string, a: unknown, b: unknown, want: boolean][] = [
    ["numbers", 1, 1, true],
    ["NaN", Number.NaN, Number.NaN, true],
    ["zeros of either sign", 0, -0, false],
    ["bigints", 1n, 1n, true],
    ["null and undefined", null, undefined, false],
    ["a string and a number", "1", 1, false],
    ["null and an object", null, {}, false],
    ["nested data", { a: [1, { b: "x" }] }, { a: [1, { b: "x" }] }, true],
    ["a difference deep down", { a: [1, { b: "x" }] }, { a: [1, { b: "y" }] }, false],
    ["arrays of other length", [1], [1, 1], false],
    ["a hole and undefined, which read alike", [undefined], new Array(1), true],
    ["an array and an object", [], {}, false],
    ["key order", { a: 1, b: 2 }, { b: 2, a: 1 }, false],
    ["a key more", { a: 1 }, { a: 1, b: undefined }, false],
    ["another key", { a: undefined }, { b: undefined }, false],
    ["bytes", Uint8Array.of(1, 2), Uint8Array.of(1, 2), true],
    ["other bytes", Uint8Array.of(1, 2), Uint8Array.of(1, 3), false],
    ["bytes and an array", Uint8Array.of(1), [1], false],
    ["maps", new Map([["a", [1]]]), new Map([["a", [1]]]), true],
    ["maps with other values", new Map([["a", [1]]]), new Map([["a", [2]]]), false],
    ["sets", new Set([1, 2]), new Set([1, 2]), true],
    ["sets in other order", new Set([1, 2]), new Set([2, 1]), false],
    ["objects without prototype", Object.create(null), Object.create(null), true],
    ["instances of classes, which go by identity", new Thing(), new Thing(), false],
    ["dates, which go by identity", new Date(0), new Date(0), false],
    ["functions", () => 1, () => 1, false],
  ];
  for (const [name, a, b, want] of table) {
    it(`${want ? "equates" : "tells apart"} ${name}`, () => {
      expect(same(a, b)).toBe(want);
      expect(same(b, a)).toBe(want);
      expect(same([a], [a])).toBe(true);
    });
  }

  it("survives data deeper than the stack", () => {
    const deep = (end: unknown) => {
      let value: unknown = end;
      for (let i = 0; i < 200_000; i++) value = { value };
      return value;
    };
    expect(same(deep(1), deep(1))).toBe(true);
    expect(same(deep(1), deep(2))).toBe(false);
  });

  it("ends on cyclic data", () => {
    const ring = (n: number) => {
      const one: { n: number; self?: unknown } = { n };
      one.self = one;
      return one;
    };
    expect(same(ring(1), ring(1))).toBe(true);
    expect(same(ring(1), ring(2))).toBe(false);
  });
});
