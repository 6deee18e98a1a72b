import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../../test/support/holds.ts";
import { FLAG, FRAME, frameOf, Http2Fault, headerFrames, settingsFrame, windowUpdateFrame } from "./frame.ts";
import { FrameReader } from "./frame-reader.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** What is told of bytes that come in these pieces; content of one frame is put together again. */
function heard(pieces: readonly Buffer[]): readonly string[] {
  const told: string[] = [];
  let content: Buffer[] = [];
  const settle = (): void => {
    if (content.length > 0) told.push(`content ${Buffer.concat(content).toString("hex")}`);
    content = [];
  };
  const reader = new FrameReader({
    data(stream, bytes, last) {
      content.push(Buffer.from(bytes));
      if (!last) return;
      settle();
      told.push(`end of ${stream}`);
    },
    padding: (stream, bytes) => void told.push(`padding ${stream} ${bytes}`),
    headers(stream, block, last) {
      settle();
      told.push(`headers ${stream} ${block.toString("hex")} ${last}`);
    },
    frame({ type, flags, stream }, bytes) {
      settle();
      told.push(`frame ${type} ${flags} ${stream} ${bytes.toString("hex")}`);
    },
    streamFault: (fault) => void told.push(`fault ${fault.stream}`),
  });
  try {
    for (const piece of pieces) reader.take(piece);
  } catch (error) {
    assert.ok(error instanceof Http2Fault);
    settle();
    told.push(`ended: ${error.message}`);
  }
  settle();
  return told;
}

function cut(bytes: Buffer, at: readonly number[]): readonly Buffer[] {
  const places = [...new Set(at.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...places].map((place, index) => Buffer.from(bytes.subarray(place, places[index] ?? bytes.length)));
}

const content = fc.uint8Array({ maxLength: 60 });
const stream = fc.integer({ min: 1, max: 9 });
const frame = fc.oneof(
  fc
    .tuple(stream, content, fc.boolean())
    .map(([id, bytes, last]) => frameOf({ type: FRAME.DATA, flags: last ? FLAG.END_STREAM : 0, stream: id }, bytes)),
  fc
    .tuple(stream, content)
    .map(([id, bytes]) =>
      frameOf({ type: FRAME.DATA, flags: FLAG.PADDED, stream: id }, Buffer.concat([Buffer.of(3), bytes, Buffer.alloc(3)])),
    ),
  fc.tuple(stream, content, fc.boolean()).map(([id, bytes, last]) => headerFrames(id, bytes, last)),
  fc
    .tuple(stream, content, content)
    .map(([id, first, second]) =>
      Buffer.concat([
        frameOf({ type: FRAME.HEADERS, flags: 0, stream: id }, Buffer.concat([Buffer.of(1), first])),
        frameOf({ type: FRAME.CONTINUATION, flags: FLAG.END_HEADERS, stream: id }, second),
      ]),
    ),
  fc.tuple(stream, fc.integer({ min: 1, max: 2 ** 31 - 1 })).map(([id, bytes]) => windowUpdateFrame(id, bytes)),
  fc.tuple(fc.nat(255), fc.nat(255), content).map(([type, flags, bytes]) => frameOf({ type, flags, stream: 1 }, bytes)),
);

describe("frames", () => {
  it("are the same however the network cuts them", () => {
    holds(
      fc.property(fc.array(frame, { maxLength: 12 }), fc.array(fc.nat(2_000), { maxLength: 12 }), (frames, places) => {
        const bytes = Buffer.concat([PREFACE, settingsFrame([]), ...frames]);
        assert.deepEqual(heard(cut(bytes, places)), heard([bytes]));
      }),
      { numRuns: 1_000 },
    );
  });

  it("whatever comes, are taken or refused", () => {
    holds(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.boolean(), (bytes, greeted) => {
        heard([Buffer.concat([...(greeted ? [PREFACE, settingsFrame([])] : []), bytes])]);
      }),
      { numRuns: 2_000 },
    );
  });

  it("begin with settings, after what every client begins with", () => {
    assert.deepEqual(heard([Buffer.from("GET / HTTP/1.1\r\n")]), ["ended: this is not HTTP/2"]);
    assert.deepEqual(heard([PREFACE, windowUpdateFrame(0, 1)]), ["ended: no settings at the beginning"]);
  });

  it("of headers come to an end", () => {
    const start = Buffer.concat([PREFACE, settingsFrame([]), frameOf({ type: FRAME.HEADERS, flags: 0, stream: 1 }, Buffer.alloc(10))]);
    const more = frameOf({ type: FRAME.CONTINUATION, flags: 0, stream: 1 }, Buffer.alloc(16_000));
    assert.match(heard([start, ...Array<Buffer>(5).fill(more)]).at(-1) ?? "", /do not come to an end/);
    assert.match(
      heard([start, frameOf({ type: FRAME.CONTINUATION, flags: 0, stream: 1 }, Buffer.alloc(0))]).at(-1) ?? "",
      /do not come to an end/,
    );
    assert.match(heard([start, windowUpdateFrame(0, 1)]).at(-1) ?? "", /interrupted/);
  });
});
