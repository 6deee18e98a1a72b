import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { labelPairs, matchesLabels } from "./labels.ts";

describe("matchesLabels", () => {
  const labels = { app: "web", version: "v1" };
  const table: readonly [selector: Record<string, string>, want: boolean][] = [
    [{}, true],
    [{ app: "web" }, true],
    [{ version: "v1", app: "web" }, true],
    [{ app: "web", version: "v2" }, false],
    [{ tier: "" }, false],
  ];
  for (const [selector, want] of table) it(JSON.stringify(selector), () => assert.equal(matchesLabels(selector, labels), want));
});

it("labelPairs does not depend on the order written", () => {
  assert.deepEqual(labelPairs({ b: "2", a: "1" }), ["a=1", "b=2"]);
});
