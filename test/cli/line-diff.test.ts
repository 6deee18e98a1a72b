import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { diffLines, lineDiff } from "../../src/cli/print/line-diff.ts";
import { holds } from "../support/holds.ts";

describe("differences of lines", () => {
  it("give both texts back, and are as short as they can be", () => {
    const lines = fc.array(fc.constantFrom("a", "b", "c", "d"), { maxLength: 12 });
    holds(
      fc.property(lines, lines, (before, after) => {
        const diff = diffLines(before, after);
        const without = (mark: string): readonly string[] => diff.filter((line) => line.mark !== mark).map(({ text }) => text);
        assert.deepEqual(without("+"), before);
        assert.deepEqual(without("-"), after);
        assert.equal(diff.filter(({ mark }) => mark === " ").length, longestCommon(before, after));
      }),
      { numRuns: 500 },
    );
  });

  it("say where in a long text a part stands", () => {
    const text = (weight: number): string =>
      [
        "hosts:",
        "  - name: a",
        "    routes:",
        ...Array.from({ length: 9 }, (_, n) => `      - r${n}`),
        `      - weight: ${weight}`,
        "",
      ].join("\n");
    assert.deepEqual(lineDiff(text(1), text(2)), [
      "@@ hosts: / - name: a / routes:",
      "  - r6",
      "  - r7",
      "  - r8",
      "- - weight: 1",
      "+ - weight: 2",
    ]);
    assert.deepEqual(lineDiff("a: 1\n", "a: 1\n"), []);
    assert.deepEqual(lineDiff("", "a: 1\nb: 2\n"), ["+ a: 1", "+ b: 2"]);
  });

  it("take no time where two long texts have nothing in common", () => {
    const lines = (mark: string): readonly string[] => Array.from({ length: 20_000 }, (_, n) => `${mark}${n}`);
    const diff = diffLines(lines("a"), lines("b"));
    assert.equal(diff.length, 40_000);
    assert.equal(diff[0]?.mark, "-");
  });
});

function longestCommon(a: readonly string[], b: readonly string[]): number {
  const row = new Array<number>(b.length + 1).fill(0);
  for (const one of a) {
    let diagonal = 0;
    for (const [index, other] of b.entries()) {
      const above = row[index + 1] ?? 0;
      row[index + 1] = one === other ? diagonal + 1 : Math.max(above, row[index] ?? 0);
      diagonal = above;
    }
  }
  return row[b.length] ?? 0;
}
