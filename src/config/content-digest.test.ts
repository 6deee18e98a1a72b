import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { contentDigest } from "./content-digest.ts";

const turned = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(turned)
    : typeof value === "object" && value !== null
      ? Object.fromEntries(
          Object.entries(value)
            .reverse()
            .map(([key, member]) => [key, turned(member)]),
        )
      : value;

describe("the digest of content", () => {
  it("is the same for the same content, in whatever order", () => {
    holds(
      fc.property(fc.jsonValue(), (value) => {
        expect(contentDigest(turned(value))).toBe(contentDigest(value));
      }),
    );
  });

  it("differs where content does", () => {
    holds(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        const isSame = JSON.stringify(sortedKeys(a)) === JSON.stringify(sortedKeys(b));
        expect(contentDigest(a) === contentDigest(b)).toBe(isSame);
      }),
    );
    const alike = [
      "",
      "a",
      "ä",
      "\u00e4\u0000",
      "\u4e00",
      "N",
      1,
      "1",
      true,
      "true",
      null,
      "null",
      [],
      {},
      [[]],
      [""],
      ["", ""],
      [null],
      { a: "" },
    ];
    const nested = [{ a: "b" }, { ab: "" }, ["a", "b"], ["ab"], [["a"], "b"], [{ a: 1 }, 2], [{ a: 1, b: 2 }]];
    expect(new Set([...alike, ...nested].map(contentDigest)).size).toBe(alike.length + nested.length);
  });

  it("is that of all of it, however long, and of it alone", () => {
    const long = "x".repeat(100_000);
    const before = contentDigest("a");
    expect(contentDigest([long, 1])).not.toBe(contentDigest([long, 2]));
    expect(contentDigest(Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`k${index}`, index])))).not.toBe(before);
    expect(contentDigest("a")).toBe(before);
    expect(contentDigest({ a: undefined, b: 1 })).toBe(contentDigest({ b: 1 }));
  });
});

const sortedKeys = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(sortedKeys)
    : typeof value === "object" && value !== null
      ? Object.entries(value)
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([key, member]) => ({ key, member: sortedKeys(member) }))
          .concat([{ key: "", member: "an object" }])
      : Object.is(value, -0)
        ? 0
        : value;
