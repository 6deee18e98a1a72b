import type { IncomingMessage } from "node:http";
import type { Clock } from "../base/clock.ts";

/** What a request said, or why it is not listened to. */
export type BodyRead = { readonly value: unknown } | BodyFault;

export interface BodyFault {
  readonly status: number;
  readonly fault: string;
}

/** Kubernetes itself takes no larger request. */
export const LARGEST_BODY = 3 * 1024 * 1024;
/** Levels of nesting; an AdmissionReview of the deepest kind there is has about 30. */
export const DEEPEST_BODY = 100;
/** Time for the whole body: what is sent more slowly than the webhook's timeout is of no use to anybody. */
const BODY_MS = 4_000;

/** What all bodies that are being read may take together. */
export interface BodyBudget {
  /** Whether so many more bytes may be held; those that may are counted. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

/** A budget of so many bytes, none of them taken yet. */
export function bodyBudget(most: number): BodyBudget {
  let held = 0;
  return {
    take(bytes) {
      if (held + bytes > most) return false;
      held += bytes;
      return true;
    },
    give(bytes) {
      held -= bytes;
    },
  };
}

/** Reads the JSON body of a request: bounded in size, depth and time, and never deeper on the stack than in the text. */
export async function readBody(request: IncomingMessage, clock: Clock, budget: BodyBudget): Promise<BodyRead> {
  if (request.headers["content-type"]?.split(";")[0]?.trim() !== "application/json")
    return { status: 415, fault: "the body must be JSON, and Content-Type must say so" };
  if (Number(request.headers["content-length"] ?? 0) > LARGEST_BODY) return TOO_LARGE;
  const text = await readText(request, clock, budget);
  if (typeof text !== "string") return text;
  if (text === "") return { status: 400, fault: "there is no body" };
  const fault = depthFault(text);
  if (fault !== undefined) return { status: 400, fault };
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { status: 400, fault: "the body is no JSON" };
  }
}

const TOO_LARGE: BodyFault = { status: 413, fault: `the body is larger than ${LARGEST_BODY} bytes` };

const TOO_MANY: BodyFault = { status: 503, fault: "too much is being sent at once" };

function readText(request: IncomingMessage, clock: Clock, budget: BodyBudget): Promise<string | BodyFault> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let taken = 0;
    const finish = (result: string | BodyFault): void => {
      cancel();
      request.removeAllListeners("data");
      budget.give(taken);
      taken = 0;
      resolve(result);
    };
    const cancel = clock.after(BODY_MS, () => finish({ status: 408, fault: `the body did not come within ${BODY_MS} ms` }));
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > LARGEST_BODY) return finish(TOO_LARGE);
      if (!budget.take(chunk.length)) return finish(TOO_MANY);
      taken += chunk.length;
      chunks.push(chunk);
    });
    request.once("end", () => finish(Buffer.concat(chunks).toString("utf8")));
    request.once("error", () => finish({ status: 400, fault: "the body broke off" }));
    request.once("close", () => finish({ status: 400, fault: "the body broke off" }));
  });
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Counts brackets outside of texts, without building anything: what nests too deeply is refused before it is read. */
function depthFault(text: string): string | undefined {
  let depth = 0;
  let inText = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (inText) {
      if (code === BACKSLASH) at++;
      else if (code === QUOTE) inText = false;
    } else if (code === QUOTE) inText = true;
    else if (code === 0x7b || code === 0x5b) {
      depth++;
      if (depth > DEEPEST_BODY) return `the body nests more than ${DEEPEST_BODY} levels deep`;
    } else if (code === 0x7d || code === 0x5d) depth--;
  }
  return undefined;
}
