import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { SLICE_MS } from "../base/slice.ts";
import { jsonOf, readChunks, type WatchEvent, watchEvents } from "./answer-body.ts";

const answer = (statusCode = 200, headers = {}): PassThrough & IncomingMessage =>
  Object.assign(new PassThrough(), { statusCode, headers }) as unknown as PassThrough & IncomingMessage;
const line = (name: string): string => `{"type":"ADDED","object":{"metadata":{"name":${JSON.stringify(name)}}}}\n`;

async function collect(body: AsyncIterable<readonly WatchEvent[]>): Promise<readonly (readonly string[])[]> {
  const lists: string[][] = [];
  for await (const events of body) lists.push(events.map(({ object }) => (object as { metadata: { name: string } }).metadata.name));
  return lists;
}

describe("the events of a watch", () => {
  it("are read whole, wherever the chunks are cut", async () => {
    const body = answer();
    const bytes = Buffer.from(line("ä") + line("b") + line("c"));
    for (const at of bytes.keys()) body.write(bytes.subarray(at, at + 1));
    body.end();
    expect((await collect(watchEvents(body, { clock: manualClock(), idleMs: 1000 }))).flat()).toEqual(["ä", "b", "c"]);
  });

  it("that come together are told together", async () => {
    const body = answer();
    body.write(line("a") + line("b"));
    body.end();
    expect(await collect(watchEvents(body, { clock: manualClock(), idleMs: 1000 }))).toEqual([["a", "b"]]);
  });

  it("end with what the server says is wrong", async () => {
    const body = answer();
    body.end('{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n');
    await expect(collect(watchEvents(body, { clock: manualClock(), idleMs: 1000 }))).rejects.toMatchObject({ status: 410, isGone: true });
  });

  it("end when nothing comes for too long", async () => {
    const clock = manualClock();
    const body = answer();
    const all = collect(watchEvents(body, { clock, idleMs: 1000 }));
    body.write(line("a"));
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(999);
    expect(body.destroyed).toBe(false);
    clock.advance(1);
    await expect(all).rejects.toMatchObject({ status: 0, reason: "Silent" });
  });

  it("end with a line that is none", async () => {
    const body = answer();
    body.end("garbage\n");
    await expect(collect(watchEvents(body, { clock: manualClock(), idleMs: 1000 }))).rejects.toMatchObject({ reason: "Unreadable" });
  });
});

describe("an answer", () => {
  const times = { clock: manualClock(), idleMs: 1000 };

  it("is its JSON", async () => {
    const body = answer();
    body.end('{"a":1}');
    expect(await jsonOf(body, times)).toEqual({ a: 1 });
  });

  it("that is long gives way to others while it is taken", async () => {
    const clock = manualClock();
    const body = answer();
    for (let index = 0; index < 40; index++) body.write(String(index % 10));
    body.end();
    let taken = "";
    const seen: number[] = [];
    const look = (): void => {
      seen.push(taken.length);
      if (taken.length < 40) setImmediate(look);
    };
    setImmediate(look);
    await readChunks(body, { clock, idleMs: 1000 }, (chunk) => {
      taken += chunk.toString();
      clock.advance(1);
    });
    expect(taken).toBe("0123456789".repeat(4));
    const steps = [...seen, taken.length].map((length, index) => length - (seen[index - 1] ?? 0));
    expect(Math.max(...steps)).toBeLessThanOrEqual(SLICE_MS);
  });

  it("with a status of failure is what the server says", async () => {
    const body = answer(429, { "retry-after": "3" });
    body.end('{"kind":"Status","code":429,"reason":"TooManyRequests","message":"later"}');
    await expect(jsonOf(body, times)).rejects.toMatchObject({
      status: 429,
      reason: "TooManyRequests",
      message: "later",
      retryAfterMs: 3000,
    });
    const plain = answer(503);
    plain.end("down");
    await expect(jsonOf(plain, times)).rejects.toMatchObject({ status: 503, message: "down" });
  });
});
