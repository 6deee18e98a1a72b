import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { ListTexts } from "./list-texts.ts";

describe("texts that are shared", () => {
  it("say what the bytes say, whatever was said before", () => {
    // Few different ones, so that places in the table are taken again and again.
    const part = fc.constantFrom("a", "b", "é", "\u{1f600}", "\0", "app.kubernetes.io/name", "x".repeat(40), "x".repeat(41));
    const text = fc.array(part, { maxLength: 3 }).map((parts) => Buffer.from(parts.join("")));
    const broken = fc.uint8Array({ maxLength: 3 }).map((bytes) => Buffer.from(bytes));
    holds(
      fc.property(fc.array(fc.oneof(text, broken), { maxLength: 60 }), (all) => {
        const texts = new ListTexts();
        const bytes = Buffer.concat(all);
        let at = 0;
        for (const one of all) {
          expect(texts.read(bytes, at, at + one.length)).toBe(one.toString("utf8"));
          at += one.length;
        }
      }),
    );
  });

  it("are one where places in the table collide, too", () => {
    const texts = new ListTexts();
    const names = Array.from({ length: 20_000 }, (_, index) => `pod-${index}`);
    for (const name of [...names, ...names]) expect(texts.read(Buffer.from(name), 0, name.length)).toBe(name);
  });

  it("write times as JSON does", () => {
    const texts = new ListTexts();
    expect([0, 0, 1_760_000_000, 0].map((seconds) => texts.time(seconds))).toEqual([
      "1970-01-01T00:00:00Z",
      "1970-01-01T00:00:00Z",
      "2025-10-09T08:53:20Z",
      "1970-01-01T00:00:00Z",
    ]);
  });
});
