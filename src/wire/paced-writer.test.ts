import { Writable } from "node:stream";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { nextTurn } from "../base/slice.ts";
import { PacedWriter } from "./paced-writer.ts";
import { SharedPace } from "./shared-pace.ts";

/** A stream that takes what is written when the test says so. */
function slowStream() {
  const taken: Buffer[] = [];
  const waiting: (() => void)[] = [];
  let ended = false;
  const take = (bytes: Buffer, done: () => void): void => {
    waiting.push(() => {
      taken.push(bytes);
      done();
    });
  };
  const stream = new Writable({
    highWaterMark: 1_000,
    write: (chunk: Buffer, _encoding, done) => take(chunk, done),
    writev: (chunks, done) => take(Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer)), done),
    final(done) {
      ended = true;
      done();
    },
  });
  return {
    stream,
    /** Takes what is handed over, once; gives how much that was. */
    async step(): Promise<number> {
      waiting.shift()?.();
      await new Promise(setImmediate);
      return taken.at(-1)?.length ?? 0;
    },
    get held() {
      return stream.writableLength;
    },
    get pending() {
      return waiting.length > 0;
    },
    get ended() {
      return ended;
    },
    bytes: () => Buffer.concat(taken),
  };
}

const MB = 1024 * 1024;

describe("PacedWriter", () => {
  it("hands over a piece at a time, says when a message has gone, and ends after the last", async () => {
    const slow = slowStream();
    const writer = new PacedWriter(slow.stream, new SharedPace());
    const said: string[] = [];
    const [large, small] = [Buffer.alloc(MB, "a"), Buffer.from("b")];
    writer.write([large.subarray(0, 10), large.subarray(10)], () => said.push("large"));
    writer.write([small], () => said.push("small"));
    writer.end();
    let most = 0;
    while (slow.pending) {
      most = Math.max(most, slow.held);
      expect(said).toEqual([]);
      expect(slow.ended).toBe(false);
      await slow.step();
      if (said.length > 0) break;
    }
    while (slow.pending) await slow.step();
    expect(most, "with the headers of its frames it stays under what is mapped for each copy").toBeLessThan(32 * 1024 - 256);
    expect(said).toEqual(["large", "small"]);
    expect(slow.ended).toBe(true);
    expect(slow.bytes().equals(Buffer.concat([large, small]))).toBe(true);
  });

  it("changes nothing of what is sent, however it is cut", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(fc.nat(300_000), { maxLength: 4 }), { maxLength: 4 }), async (messages) => {
        const slow = slowStream();
        const writer = new PacedWriter(slow.stream, new SharedPace());
        const buffers = messages.map((sizes, index) => sizes.map((size, part) => Buffer.alloc(size, `${index}.${part};`)));
        let flushed = 0;
        for (const message of buffers) writer.write(message, () => (flushed += 1));
        while (flushed < messages.length) await slow.step();
        expect(flushed).toBe(messages.length);
        expect(slow.bytes().equals(Buffer.concat(buffers.flat()))).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  it("leaves room in every turn of the loop, to however many it writes", async () => {
    const pace = new SharedPace();
    let handed = 0;
    const quick = (): Writable =>
      new Writable({
        highWaterMark: MB,
        writev(chunks, done) {
          handed += chunks.reduce((sum, { chunk }) => sum + (chunk as Buffer).length, 0);
          setImmediate(done);
        },
        write(chunk: Buffer, _encoding, done) {
          handed += chunk.length;
          setImmediate(done);
        },
      });
    const streams = 50;
    let flushed = 0;
    for (let index = 0; index < streams; index++) new PacedWriter(quick(), pace).write([Buffer.alloc(MB)], () => (flushed += 1));
    let most = handed;
    while (flushed < streams) {
      const before = handed;
      await nextTurn();
      most = Math.max(most, handed - before);
    }
    expect(handed).toBe(streams * MB);
    expect(most, "the last piece of a turn may go beyond it").toBeLessThanOrEqual(MB + 32 * 1024);
  });
});
