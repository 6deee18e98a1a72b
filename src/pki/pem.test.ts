import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { readPem, writePem } from "./pem.ts";

describe("PEM", () => {
  it("is read as it was written, with whatever stands around it", () => {
    holds(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.constantFrom("\n", "\r\n"), (bytes, ending) => {
        const text = writePem("CERTIFICATE", bytes).replaceAll("\n", ending);
        const blocks = readPem(`before${ending}${text}between${ending}${text}after`);
        expect(blocks).toEqual([0, 1].map(() => ({ label: "CERTIFICATE", bytes: Buffer.from(bytes) })));
      }),
    );
  });

  it("has lines of 64 characters", () => {
    const lines = writePem("X", Buffer.alloc(100)).split("\n");
    expect(lines.map(({ length }) => length)).toEqual([17, 64, 64, 8, 15, 0]);
  });

  it("that never ends costs no more than its length", () => {
    expect(readPem(`-----BEGIN X-----${" ".repeat(2_000_000)}`)).toEqual([]);
    expect(readPem("-----BEGIN X-----\n".repeat(100_000))).toEqual([]);
  });
});
