import { describe, expect, it } from "vitest";
import { canonicalQuantity } from "./quantity.ts";

describe("canonicalQuantity", () => {
  const table: readonly [text: string, want: string | undefined][] = [
    ["2000m", "2"],
    ["100m", "100m"],
    ["1024Mi", "1Gi"],
    ["1.5Gi", "1536Mi"],
    ["0", "0"],
    ["0m", "0"],
    ["1000", "1k"],
    ["1e3", "1k"],
    ["0.1", "100m"],
    ["500000000n", "500m"],
    ["-1", "-1"],
    ["12E", "12E"],
    ["1Ki", "1Ki"],
    ["1000Ki", "1000Ki"],
    ["", undefined],
    ["1 Gi", undefined],
    ["1gi", undefined],
    ["one", undefined],
    ["1\n", "1"],
  ];
  for (const [text, want] of table) it(`${JSON.stringify(text)} is ${want}`, () => expect(canonicalQuantity(text)).toBe(want));
});
