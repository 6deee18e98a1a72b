import assert from "node:assert/strict";
import { it } from "vitest";
import { sortedJson } from "./sorted-json.ts";

it("sortedJson makes equal values equal as text, however deep their keys are", () => {
  const [one, other] = [
    { b: [{ d: 1, c: null }], a: { y: "2", x: true } },
    { a: { x: true, y: "2" }, b: [{ c: null, d: 1 }] },
  ];
  assert.equal(JSON.stringify(sortedJson(one)), '{"a":{"x":true,"y":"2"},"b":[{"c":null,"d":1}]}');
  assert.equal(JSON.stringify(sortedJson(other)), JSON.stringify(sortedJson(one)));
});
