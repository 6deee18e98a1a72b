import type { ServerResponse } from "node:http";
import type { Clock } from "../base/clock.ts";
import { jsonParts } from "../base/json-parts.ts";
import { createSlice } from "../base/slice.ts";
import type { HttpAnswer } from "../debug/http-route.ts";

const PIECE_CHARACTERS = 64 * 1024;

/**
 * Sends an answer. JSON is written piece by piece, giving way to others in between, and no faster than it is taken: a page of a large mesh may have many MB. What it shows is
 * read while it is sent. Rejects where a page fails on the way: what was sent by then is cut off, and its reader sees that.
 */
export async function sendAnswer(
  response: ServerResponse,
  { status, body, contentType }: HttpAnswer,
  { clock, headOnly }: { readonly clock: Pick<Clock, "monotonic">; readonly headOnly: boolean },
): Promise<void> {
  const isPlain = typeof body === "string" || body instanceof Uint8Array;
  const pieces = jsonPieces(isPlain ? "" : body, clock);
  // Most pages have no second one; what fails before it is told as a failure.
  const first = await pieces.next();
  response.writeHead(status, {
    "content-type": contentType ?? (isPlain ? "text/plain; charset=utf-8" : "application/json"),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  if (headOnly || isPlain) {
    response.end(headOnly ? undefined : body);
    return void (await pieces.return());
  }
  for (let next = first; next.done !== true; next = await pieces.next()) {
    if (!response.destroyed && !response.write(next.value)) await drained(response);
    if (response.destroyed) return void (await pieces.return());
  }
  response.end("\n");
}

/** The JSON of a page in pieces of a size that is worth sending. Between them, and while they are made, others have their turn. */
export async function* jsonPieces(body: unknown, clock: Pick<Clock, "monotonic">): AsyncGenerator<string, void> {
  const pause = createSlice(clock);
  let piece = "";
  for (const part of jsonParts(body)) {
    piece += part;
    if (piece.length >= PIECE_CHARACTERS) {
      yield piece;
      piece = "";
    }
    const rest = pause();
    if (rest !== undefined) await rest;
  }
  if (piece !== "") yield piece;
}

/** Resolves when more can be written, or nobody reads any more. */
const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      response.off("drain", done);
      response.off("close", done);
      resolve();
    };
    response.once("drain", done);
    response.once("close", done);
  });
