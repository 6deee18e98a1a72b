import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { bytesField, messageField, numberField, textField } from "../wire/field-writer.ts";
import type { KubePage } from "./list-reader.ts";
import { protoStatus } from "./proto-envelope.ts";
import { objectFields } from "./proto-fields.ts";
import { ProtoListReader } from "./proto-list-reader.ts";
import type { KubeObject } from "./resource-type.ts";

const METADATA = {
  name: { at: 1 },
  creationTimestamp: { at: 8, is: "time" },
  deletionTimestamp: { at: 9, is: "time" },
  labels: { at: 11, is: "map" },
} as const;
const PORT = {
  name: { at: 1, zero: true },
  port: { at: 3, is: "int", zero: true },
  offset: { at: 4, is: "int" },
  target: { at: 5, is: "intOrString" },
} as const;
const FIELDS = objectFields({
  metadata: { at: 1, of: METADATA },
  spec: {
    at: 2,
    of: { host: { at: 1 }, isHost: { at: 2, is: "bool" }, isReady: { at: 3, is: "bool", zero: true }, names: { at: 4, repeated: true } },
  },
  ports: { at: 3, repeated: true, of: PORT },
});

const written = (text: string): Buffer => bytesField(1, Buffer.from(text));
const metadata = (name: string, more: readonly Buffer[] = []): Buffer => messageField(1, [written(name), ...more]);
const label = (key: string, value: string): Buffer => messageField(11, [textField(1, key), textField(2, value)]);
/** A list as an API server sends it: magic, envelope, the list in it, what follows. */
const list = (...fields: readonly Buffer[]): Buffer =>
  Buffer.concat([
    Buffer.from("k8s\0"),
    messageField(1, [textField(1, "v1"), textField(2, "PodList")]),
    bytesField(2, Buffer.concat(fields)),
    bytesField(3, Buffer.alloc(0)),
    bytesField(4, Buffer.alloc(0)),
  ]);
const head = messageField(1, [textField(2, "7"), textField(3, "next"), numberField(4, 9)]);
const item = (...fields: readonly Buffer[]): Buffer => bytesField(2, Buffer.concat(fields));

/** Reads a list that comes in two parts, of which the first is looked at where it is long. */
function page(bytes: Buffer, cut = 0): KubePage {
  const items: KubeObject[] = [];
  const reader = new ProtoListReader((object) => items.push(object), FIELDS);
  reader.add(bytes.subarray(0, cut));
  reader.add(bytes.subarray(cut));
  return { ...reader.end(), items };
}

describe("a list in protobuf", () => {
  it("has its objects and what it says of itself", () => {
    const unread = [
      numberField(7, 5),
      bytesField(17, Buffer.from("managed fields")),
      Buffer.from([(15 << 3) | 1, 1, 2, 3, 4, 5, 6, 7, 8]),
      Buffer.from([(14 << 3) | 5, 1, 2, 3, 4]),
    ];
    const { items, ...said } = page(
      list(
        head,
        item(metadata("a", [label("app", "x"), label("__proto__", "y")]), bytesField(9, Buffer.from("?"))),
        item(metadata("b", unread)),
      ),
    );
    expect(said).toEqual({ continue: "next", resourceVersion: "7" });
    expect(JSON.stringify(items)).toBe('[{"metadata":{"name":"a","labels":{"app":"x","__proto__":"y"}}},{"metadata":{"name":"b"}}]');
  });

  it("says what its JSON would: what is empty only where that was written, times as texts, numbers with their sign", () => {
    const time = (at: number, seconds: number): Buffer => messageField(at, [numberField(1, seconds)]);
    const minusOne = Buffer.from([4 << 3, ...Array(9).fill(0xff), 1]);
    const { items } = page(
      list(
        item(
          metadata("a", [time(8, 1_760_000_000), bytesField(9, Buffer.alloc(0))]),
          bytesField(
            2,
            Buffer.concat([
              bytesField(1, Buffer.alloc(0)),
              Buffer.from([2 << 3, 0, 3 << 3, 0]),
              bytesField(4, Buffer.from("x")),
              bytesField(4, Buffer.alloc(0)),
            ]),
          ),
          bytesField(3, Buffer.concat([bytesField(1, Buffer.alloc(0)), Buffer.from([3 << 3, 0]), minusOne])),
          bytesField(3, Buffer.concat([Buffer.from([4 << 3, 0])])),
        ),
      ),
    );
    expect(items).toEqual([
      {
        metadata: { name: "a", creationTimestamp: "2025-10-09T08:53:20Z", deletionTimestamp: null },
        spec: { isReady: false, names: ["x", ""] },
        ports: [{ name: "", port: 0, offset: -1 }, {}],
      },
    ]);
  });

  it("has numbers or texts where either may be", () => {
    const target = (type: number, number: number, text: string): Buffer =>
      bytesField(3, messageField(5, [numberField(1, type), numberField(2, number), textField(3, text), numberField(9, 1)]));
    const { items } = page(list(item(metadata("a"), target(0, 8080, ""), target(1, 0, "http"))));
    expect(items).toEqual([{ metadata: { name: "a" }, ports: [{ target: 8080 }, { target: "http" }] }]);
  });

  it("is the same however it is cut", () => {
    const long = item(metadata("long", [bytesField(17, Buffer.alloc(64 * 1024))]));
    const whole = list(long, item(metadata("a", [label("k", "v")])), head, item(metadata("x".repeat(300))), item(metadata("b")));
    const want = page(whole);
    expect(want.items.map(({ metadata: { name } }) => name.length)).toEqual([4, 1, 300, 1]);
    for (let cut = 64 * 1024; cut <= whole.length; cut++) expect(page(whole, cut)).toEqual(want);
  });

  it("that ends too soon, or is none, says so", () => {
    const whole = list(head, item(metadata("a")));
    for (let length = 0; length < whole.length - 4; length++) expect(() => page(whole.subarray(0, length))).toThrow(/is no list/);
    expect(() => page(Buffer.from('{"items":[]}'))).toThrow(/is no list: it does not begin as/);
    expect(() => page(list(Buffer.from([3 << 3, 1])))).toThrow(/is of another type/);
    expect(() => page(list(item(messageField(1, [numberField(1, 1)]))))).toThrow(/name is of another type/);
    expect(() => page(list(Buffer.from([ITEM, 0xff, 0xff, 0xff, 0xff, 0x0f])))).toThrow(/goes beyond the end/);
  });

  it("never throws anything else", () => {
    const anything = fc
      .uint8Array({ maxLength: 200 })
      .map((bytes) => Buffer.concat([Buffer.from("k8s\0"), Buffer.from([ITEM, bytes.length]), bytes]));
    holds(
      fc.property(anything, (bytes) => {
        try {
          page(bytes);
        } catch (error) {
          expect(String(error)).toMatch(/^KubeError: /);
        }
      }),
    );
  });
});

const ITEM = (2 << 3) | 2;

describe("a refusal in protobuf", () => {
  it("is read as one in JSON is", () => {
    const status = [textField(2, "Failure"), textField(3, "pods is forbidden"), textField(4, "Forbidden"), numberField(6, 403)];
    expect(protoStatus(list(...status))).toEqual({ message: "pods is forbidden", reason: "Forbidden", code: 403 });
    expect(protoStatus(Buffer.from("k8s\0?????"))).toBeUndefined();
  });
});
