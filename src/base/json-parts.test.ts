import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { jsonParts } from "./json-parts.ts";

const textOf = (value: unknown): string => [...jsonParts(value)].join("");

describe("jsonParts", () => {
  const values: readonly unknown[] = [
    null,
    'a "quoted"\nline',
    [],
    {},
    [[], {}, [1, [2]]],
    { a: undefined, b: null, c: [undefined, () => 1], d: { e: true }, 'k"': "x" },
    { at: new Date(0), secret: { toJSON: () => "[redacted]" }, bytes: Number.NaN },
    undefined,
  ];
  for (const value of values)
    it(`writes ${JSON.stringify(value)} as JSON.stringify does`, () =>
      assert.equal(textOf(value), JSON.stringify(value, null, 2) ?? "null"));

  it("writes what can be iterated over as a list, and takes each entry when it is written", () => {
    let made = 0;
    const entries = function* (): Generator<{ n: number }> {
      while (made < 3) yield { n: made++ };
    };
    const parts = jsonParts({ list: entries() });
    for (let count = 0; count < 4; count++) parts.next();
    assert.equal(made, 1);
    made = 0;
    assert.deepEqual(JSON.parse(textOf({ list: entries() })), { list: [{ n: 0 }, { n: 1 }, { n: 2 }] });
  });
});
