import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { findKey, SortedKeys } from "./sorted-keys.ts";

describe("SortedKeys", () => {
  it("is a sorted set whose array changes only when it does", () => {
    const opArb = fc.record({ key: fc.string({ maxLength: 2 }), read: fc.boolean() });
    holds(
      fc.property(fc.array(opArb), (ops) => {
        const keys = new SortedKeys();
        const model = new Set<string>();
        for (const { key, read } of ops) {
          if (model.delete(key)) keys.remove(key);
          else keys.add(model.add(key) && key);
          expect(keys.size).toBe(model.size);
          if (!read) continue;
          const array = keys.toArray();
          expect(array).toEqual([...model].sort());
          expect(keys.toArray()).toBe(array);
          for (const one of model) expect(array[findKey(array, one)]).toBe(one);
          expect(findKey(array, "absent")).toBe(-1);
        }
      }),
    );
  });

  it("forgets a key put there and back", () => {
    const keys = new SortedKeys();
    keys.add("a");
    const array = keys.toArray();
    keys.remove("a");
    keys.add("a");
    expect(keys.toArray()).toBe(array);
  });
});
