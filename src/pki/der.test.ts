import { constants } from "node:buffer";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { type DerElement, DerError, DerReader, inside, readBits, readBoolean, readOid, readWhole, TAG } from "./der-reader.ts";
import { bitString, boolean, der, integer, octetString, oid, sequence, time } from "./der-writer.ts";

const bytes = (hex: string): Buffer => Buffer.from(hex.replaceAll(" ", ""), "hex");
const read = (hex: string): DerElement => new DerReader(bytes(hex)).any();

describe("reading", () => {
  it.for([
    ["nothing", ""],
    ["a tag alone", "30"],
    ["a length beyond the end", "3002 00"],
    ["an indefinite length", "3080 0000"],
    ["a long form for a short length", "3081 01 00"],
    ["a leading zero in a length", `308200 80${"00".repeat(128)}`],
    ["a length of five bytes", "3085 0100000000"],
    ["a tag of two bytes", "1f8101 00"],
  ] as const)("refuses %s", ([, hex]) => {
    expect(() => read(hex)).toThrow(DerError);
  });

  it("refuses bytes after the value and another tag than expected", () => {
    expect(() => readWhole(bytes("0500 00"), TAG.NULL)).toThrow("after the last value");
    expect(() => readWhole(bytes("0500"), TAG.SEQUENCE)).toThrow("expected tag 0x30, found 0x05");
  });

  it.for([
    ["2a864886f70d01010b", "1.2.840.113549.1.1.11"],
    ["550411", "2.5.4.17"],
    ["8837", "2.999"],
    ["2b6570", "1.3.101.112"],
  ] as const)("knows the object identifier %s", ([hex, dotted]) => {
    expect(readOid(read(`06${(hex.length / 2).toString(16).padStart(2, "0")}${hex}`))).toBe(dotted);
    expect(oid(dotted)).toEqual(bytes(`06${(hex.length / 2).toString(16).padStart(2, "0")}${hex}`));
  });

  it.for(["0600", "060180", "0602 8001", `06 41 ${"01".repeat(65)}`, "060a 2a ffffffffffffffff7f"])(
    "refuses the object identifier %s",
    (hex) => {
      expect(() => readOid(read(hex))).toThrow(DerError);
    },
  );

  it("refuses odd bits and other spellings of true", () => {
    expect(() => readBits(read("0302 0108"))).toThrow(DerError);
    expect(() => readBits(read("0300"))).toThrow(DerError);
    expect(() => readBoolean(read("0101 01"))).toThrow(DerError);
    expect(readBoolean(read("0101 ff"))).toBe(true);
  });
});

describe("writing", () => {
  it("chooses the shortest length and integer", () => {
    expect(octetString(Buffer.alloc(127)).subarray(0, 2)).toEqual(bytes("047f"));
    expect(octetString(Buffer.alloc(128)).subarray(0, 3)).toEqual(bytes("048180"));
    expect(octetString(Buffer.alloc(300)).subarray(0, 4)).toEqual(bytes("0482012c"));
    expect(octetString(Buffer.alloc(0xff_ff)).subarray(0, 4)).toEqual(bytes("0482ffff"));
    expect(octetString(Buffer.alloc(0x1_00_00)).subarray(0, 5)).toEqual(bytes("0483010000"));
    expect(octetString(Buffer.alloc(0x1_00_00_00)).subarray(0, 6)).toEqual(bytes("048401000000"));
    expect(integer(bytes("00 00 80"))).toEqual(bytes("0202 0080"));
    expect(integer(bytes("00 00"))).toEqual(bytes("0201 00"));
    expect(integer(bytes(""))).toEqual(bytes("0201 00"));
    expect(boolean(false)).toEqual(bytes("0101 00"));
    expect(bitString(bytes("a0"), 5)).toEqual(bytes("0302 05a0"));
  });

  it("writes years from 2050 in full", () => {
    expect(time(Date.UTC(2049, 11, 31, 23, 59, 59, 999)).toString("latin1")).toBe("\x17\x0d491231235959Z");
    expect(time(Date.UTC(2050, 0, 1)).toString("latin1")).toBe("\x18\x0f20500101000000Z");
  });
});

/** Reads all that can be read, as far down as it goes. */
function walk(reader: DerReader, depth: number): void {
  while (!reader.done) {
    const element = reader.any();
    if ((element.tag & 0x20) !== 0 && depth < 50) walk(inside(element), depth + 1);
    else if (element.tag === TAG.OID) readOid(element);
    else if (element.tag === TAG.BIT_STRING) readBits(element);
  }
}

const typed = (run: () => void): void => {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(DerError);
  }
};

describe("whatever comes", () => {
  it("is read or refused as DER, never otherwise", () => {
    holds(
      fc.property(fc.uint8Array({ maxLength: 200 }), (any) => typed(() => walk(new DerReader(any), 0))),
      { numRuns: 3_000 },
    );
  });

  it("is refused when it claims more than there is", () => {
    expect(() => read(`0484${constants.MAX_LENGTH.toString(16).slice(-8).padStart(8, "f")}`)).toThrow(DerError);
    expect(() => read("3084 ffffffff 00")).toThrow("longer than what contains it");
  });

  it("comes back as it was written, and broken values are refused as DER", () => {
    const tree = fc.letrec<{ value: Buffer }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 5 },
        fc.uint8Array({ maxLength: 300 }).map((content) => der(TAG.OCTET_STRING, content)),
        fc.array(tie("value"), { maxLength: 4 }).map((values) => sequence(...values)),
      ),
    })).value;
    holds(
      fc.property(tree, fc.nat(), fc.nat(255), (value, at, byte) => {
        expect(new DerReader(value).any().raw).toEqual(value);
        const broken = Buffer.from(value);
        broken[at % broken.length] = byte;
        typed(() => walk(new DerReader(broken), 0));
      }),
    );
  });
});
