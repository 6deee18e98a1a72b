import fc from "fast-check";
import { RE2JS } from "re2js";
import { describe, expect, it } from "vitest";
import { holds } from "../../../../test/support/holds.ts";
import { literal, matchText, parsePattern, patternRegex } from "./text-pattern.ts";

/** Texts full of what means something to a regular expression. */
const tricky = fc.string({ unit: fc.constantFrom(..."ab.*+?()[]{}|^$\\/-: "), minLength: 1, maxLength: 12 });
const takes = (regex: string, text: string): boolean => RE2JS.compile(regex).matches(text);

describe("literal", () => {
  it("matches the text itself and nothing else", () => {
    holds(
      fc.property(tricky, tricky, (text, other) => {
        expect(takes(literal(text), text)).toBe(true);
        expect(takes(literal(text), other)).toBe(other === text);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("patternRegex", () => {
  it("leaves open only the end with the star", () => {
    holds(
      fc.property(tricky, tricky, (text, other) => {
        expect(takes(patternRegex({ kind: "prefix", text }, ".*"), other)).toBe(other.startsWith(text));
        expect(takes(patternRegex({ kind: "suffix", text }, ".*"), other)).toBe(other.endsWith(text));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe("parsePattern", () => {
  const table: readonly [text: string, kind: string, rest?: string][] = [
    ["*", "any"],
    ["/a*", "prefix", "/a"],
    ["*.test", "suffix", ".test"],
    ["a*b", "exact", "a*b"],
    ["a.b", "exact", "a.b"],
  ];
  for (const [text, kind, rest] of table) {
    it(`${text} is ${kind}`, () => expect(parsePattern(text)).toEqual(rest === undefined ? { kind } : { kind, text: rest }));
  }

  it("never makes a regular expression of a text, whatever is in it", () => {
    holds(
      fc.property(tricky, (text) => {
        const pattern = parsePattern(text);
        if (pattern.kind !== "any") expect(matchText(pattern).matchPattern.case).toBe(pattern.kind);
      }),
    );
  });
});
