import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { definePrepareFirst } from "./prepare-first.ts";

describe("definePrepareFirst", () => {
  const result = { large: true };
  const counted = (make: () => object) => {
    const seen: string[] = [];
    function* steps(): Iterable<void> {
      for (const step of ["one", "two"]) {
        seen.push(step);
        yield;
      }
    }
    return { seen, large: { id: "a", steps, make } };
  };

  it("takes the steps once while the result is held, for each result", () => {
    const prepareFirst = definePrepareFirst();
    const { seen, large } = counted(() => result);
    assert.equal([...prepareFirst(large)].length, 3, "a pause after each step and after the result");
    assert.equal([...prepareFirst(large)].length, 0);
    assert.equal([...prepareFirst({ ...large, id: "b" })].length, 3);
    assert.deepEqual(seen, ["one", "two", "one", "two"]);
  });

  it("leaves a fault to who asks for the result, and tries again", () => {
    const prepareFirst = definePrepareFirst();
    const { seen, large } = counted(() => {
      throw new Error("broken");
    });
    for (let turn = 0; turn < 2; turn++) assert.equal([...prepareFirst(large)].length, 3);
    assert.equal(seen.length, 4);
  });
});
