import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { jsonPatch, type PatchStep } from "./json-patch.ts";

/** Applies steps as RFC 6902 says. */
function apply(document: unknown, steps: readonly PatchStep[]): unknown {
  let root = structuredClone(document);
  for (const step of steps) {
    const path = step.path
      .split("/")
      .slice(1)
      .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
    const last = path.pop();
    if (last === undefined) {
      root = step.op === "remove" ? undefined : step.value;
      continue;
    }
    const holder = path.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], root);
    if (Array.isArray(holder)) {
      if (step.op === "remove") holder.splice(Number(last), 1);
      else if (step.op === "add") holder.splice(last === "-" ? holder.length : Number(last), 0, step.value);
      else holder[Number(last)] = step.value;
    } else if (step.op === "remove") delete (holder as Record<string, unknown>)[last];
    else (holder as Record<string, unknown>)[last] = step.value;
  }
  return root;
}

describe("jsonPatch", () => {
  it("says little where little changed", () => {
    const from = { metadata: { annotations: { "a/b~c": "1" } }, spec: { containers: [{ name: "a" }] } };
    const to = { metadata: { annotations: { "a/b~c": "2" } }, spec: { containers: [{ name: "a" }, { name: "b" }] } };
    expect(jsonPatch(from, to)).toEqual([
      { op: "replace", path: "/metadata/annotations/a~1b~0c", value: "2" },
      { op: "add", path: "/spec/containers/-", value: { name: "b" } },
    ]);
  });

  it("makes any object of any other", () => {
    const key = fc.string({ minLength: 1, maxLength: 4 }).filter((text) => text !== "__proto__");
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 4 },
        fc.integer(),
        fc.string({ maxLength: 3 }),
        fc.constant(null),
        fc.array(tie("any"), { maxLength: 4 }),
        tie("map"),
      ),
      map: fc.dictionary(key, tie("any"), { maxKeys: 4, noNullPrototype: true }),
    }));
    holds(
      fc.property(value.map, value.map, (from, to) => {
        expect(apply(from, jsonPatch(from, to))).toEqual(to);
      }),
    );
  });
});
