import type { IncomingMessage } from "node:http";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import { createSlice } from "../base/slice.ts";
import { faultOfStatus, KubeError } from "./kube-error.ts";
import { isProtobuf, protoStatus } from "./proto-envelope.ts";

/** No object is nearly as large; what is would take all the memory there is. */
const MOST_BYTES = 256 * 1024 * 1024;
/** One event of a watch: an object of an API server has a megabyte and a half at most. */
const MOST_LINE_BYTES = 16 * 1024 * 1024;

export interface BodyTimes {
  readonly clock: Clock;
  /** A body that stands still for this long is given up. */
  readonly idleMs: number;
}

/** The JSON of a whole answer; throws what the server says where its status is not one of success. */
export async function jsonOf(answer: IncomingMessage, times: BodyTimes): Promise<unknown> {
  const text = (await bytesOf(answer, times)).toString("utf8");
  try {
    return text === "" ? {} : JSON.parse(text);
  } catch (error) {
    throw unreadable(`the API server's answer cannot be read: ${messageOf(error)}`);
  }
}

/** The bytes of a whole answer; throws as `jsonOf` does. */
async function bytesOf(answer: IncomingMessage, times: BodyTimes): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  await eachChunk(answer, times, (chunk) => {
    length += chunk.length;
    if (length > MOST_BYTES) throw unreadable(`the API server's answer is larger than ${MOST_BYTES / 1024 / 1024} MB`);
    chunks.push(chunk);
  });
  const bytes = Buffer.concat(chunks, length);
  if (isGood(answer)) return bytes;
  throw faultOfStatus(statusOf(answer, bytes), answer.statusCode ?? 0, retryAfterOf(answer));
}

function statusOf({ headers }: IncomingMessage, bytes: Buffer): unknown {
  if (isProtobuf(headers["content-type"])) return protoStatus(bytes);
  const text = bytes.toString("utf8");
  return parsedOr(text, { message: text.slice(0, 200) });
}

/** Gives away the chunks of a whole answer as they come; throws what the server says where its status is not one of success. */
export async function readChunks(answer: IncomingMessage, times: BodyTimes, take: (chunk: Buffer) => void): Promise<void> {
  if (isGood(answer)) await eachChunk(answer, times, take);
  else await bytesOf(answer, times);
}

const isGood = ({ statusCode = 0 }: IncomingMessage): boolean => statusCode >= 200 && statusCode < 300;

/** One event of a watch. */
export interface WatchEvent {
  readonly type: string;
  readonly object: unknown;
}

/** The events of a watch, those that arrive together as one list. Only the line that is not whole yet is held. */
export async function* watchEvents(answer: IncomingMessage, times: BodyTimes): AsyncGenerator<readonly WatchEvent[], void> {
  let rest: Buffer[] = [];
  let held = 0;
  for await (const chunk of chunksOf(answer, times)) {
    const events: WatchEvent[] = [];
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      const line = Buffer.concat([...rest, chunk.subarray(from, end)]).toString("utf8");
      rest = [];
      held = 0;
      from = end + 1;
      if (line !== "") events.push(eventOf(line));
    }
    if (from < chunk.length) {
      rest.push(chunk.subarray(from));
      held += chunk.length - from;
      if (held > MOST_LINE_BYTES) throw unreadable(`an event of a watch is larger than ${MOST_LINE_BYTES / 1024 / 1024} MB`);
    }
    if (events.length > 0) yield events;
  }
}

const NEWLINE = 0x0a;

function eventOf(line: string): WatchEvent {
  const event = parsedOr(line, undefined);
  if (typeof event !== "object" || event === null || !("type" in event) || typeof event.type !== "string" || !("object" in event))
    throw unreadable("an event of a watch cannot be read");
  if (event.type === "ERROR") throw faultOfStatus(event.object, 500);
  return { type: event.type, object: event.object };
}

/** The chunks of a body. */
async function* chunksOf(answer: IncomingMessage, times: BodyTimes): AsyncGenerator<Buffer, void> {
  const silence = endWhenSilent(answer, times);
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      silence.broken();
      yield chunk;
    }
  } catch (error) {
    throw faultOfBody(error);
  } finally {
    silence.stop();
    answer.destroy();
  }
}

/**
 * The same for who can take each at once: an iterator would cost some promises a chunk, and large answers have thousands. As many as have come would be
 * taken in one turn of the loop, so that is cut into slices.
 */
async function eachChunk(answer: IncomingMessage, times: BodyTimes, take: (chunk: Buffer) => void): Promise<void> {
  const silence = endWhenSilent(answer, times);
  const slice = createSlice(times.clock);
  try {
    await new Promise<void>((resolve, reject) => {
      answer.on("error", reject);
      answer.on("close", () => reject(new Error("it was closed")));
      answer.on("end", resolve);
      answer.on("data", (chunk: Buffer) => {
        silence.broken();
        try {
          take(chunk);
        } catch (error) {
          answer.pause();
          reject(error);
          return;
        }
        const rest = slice();
        if (rest === undefined) return;
        answer.pause();
        void rest.then(() => answer.resume());
      });
    });
  } catch (error) {
    throw faultOfBody(error);
  } finally {
    silence.stop();
    answer.destroy();
  }
}

/** Ends a body that stands still with a fault: a server that hangs keeps its connections open. */
function endWhenSilent(answer: IncomingMessage, { clock, idleMs }: BodyTimes): { broken(): void; stop(): void } {
  let heardAt = clock.monotonic();
  // A timer for every chunk would cost more than reading it: the one there is looks when something last came.
  const look = (): void => {
    const left = heardAt + idleMs - clock.monotonic();
    if (left > 0) cancel = clock.after(left, look);
    else answer.destroy(new KubeError({ status: 0, reason: "Silent", message: `the API server said nothing for ${idleMs / 1000} s` }));
  };
  let cancel = clock.after(idleMs, look);
  return {
    broken() {
      heardAt = clock.monotonic();
    },
    stop: () => cancel(),
  };
}

const faultOfBody = (error: unknown): KubeError =>
  error instanceof KubeError
    ? error
    : new KubeError({
        status: 0,
        reason: "Unreachable",
        message: `the connection to the API server broke: ${messageOf(error)}`,
        cause: error,
      });

function retryAfterOf(answer: IncomingMessage): number | undefined {
  const seconds = Number(answer.headers["retry-after"]);
  return Number.isFinite(seconds) && seconds > 0 ? seconds * 1000 : undefined;
}

function parsedOr(text: string, fallback: unknown): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return fallback;
  }
}

const unreadable = (message: string): KubeError => new KubeError({ status: 0, reason: "Unreadable", message });
