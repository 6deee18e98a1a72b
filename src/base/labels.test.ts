import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { conditionFault, labelPairs, matchesLabels, selectsLabels } from "./labels.ts";

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

describe("selectsLabels", () => {
  const labels = { app: "web", version: "v1" };
  const table: readonly [key: string, operator: string, values: readonly string[], want: boolean][] = [
    ["app", "In", ["api", "web"], true],
    ["app", "In", ["api"], false],
    ["tier", "In", ["web"], false],
    ["app", "NotIn", ["api"], true],
    ["app", "NotIn", ["api", "web"], false],
    ["tier", "NotIn", ["web"], true],
    ["app", "Exists", [], true],
    ["tier", "Exists", [], false],
    ["constructor", "Exists", [], false],
    ["app", "DoesNotExist", [], false],
    ["tier", "DoesNotExist", [], true],
    ["constructor", "DoesNotExist", [], true],
    ["app", "in", ["web"], false],
  ];
  for (const [key, operator, values, want] of table)
    it(`${key} ${operator} ${values.join("|")}`, () =>
      assert.equal(selectsLabels({ matchLabels: {}, matchExpressions: [{ key, operator, values }] }, labels), want));

  it("takes everything without a condition, and what fulfils all of them otherwise", () => {
    const [app, version] = [
      { key: "app", operator: "Exists", values: [] },
      { key: "version", operator: "In", values: ["v2"] },
    ];
    assert.equal(selectsLabels({ matchLabels: {}, matchExpressions: [] }, {}), true);
    assert.equal(selectsLabels({ matchLabels: { app: "web" }, matchExpressions: [app] }, labels), true);
    assert.equal(selectsLabels({ matchLabels: { app: "web" }, matchExpressions: [app, version] }, labels), false);
    assert.equal(selectsLabels({ matchLabels: { app: "api" }, matchExpressions: [app] }, labels), false);
  });
});

describe("conditionFault", () => {
  const table: readonly [key: string, operator: string, values: readonly string[], want: RegExp | undefined][] = [
    ["app", "In", ["web"], undefined],
    ["app", "NotIn", ["web"], undefined],
    ["app", "Exists", [], undefined],
    ["app", "DoesNotExist", [], undefined],
    ["", "Exists", [], /needs the key/],
    ["app", "In", [], /In needs values/],
    ["app", "NotIn", [], /NotIn needs values/],
    ["app", "Exists", ["web"], /Exists takes no values/],
    ["app", "DoesNotExist", ["web"], /DoesNotExist takes no values/],
    ["app", "Equals", ["web"], /"Equals" is none of/],
  ];
  for (const [key, operator, values, want] of table)
    it(`${key} ${operator} [${values.join()}]`, () => {
      const fault = conditionFault({ key, operator, values });
      if (want === undefined) assert.equal(fault, undefined);
      else assert.match(fault ?? "", want);
    });
});
