import { expect, it } from "vitest";
import { sharedText } from "./shared-text.ts";

it("gives the text it was given", () => {
  for (const text of ["", "a", "region-1/zone-2", "grüße-aus-dem-süden", "x".repeat(1_000), "half a pair: \ud800"]) {
    expect(sharedText(text)).toBe(text);
    expect(sharedText(text)).toBe(text);
  }
});

it("still does after more texts than it keeps", () => {
  for (let index = 0; index < 10_000; index++) expect(sharedText(`text-${index}`)).toBe(`text-${index}`);
  expect(sharedText("text-1")).toBe("text-1");
});
