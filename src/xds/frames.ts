import { deltaAck } from "../wire/discovery-request.ts";
import type { DiscoveryVariant } from "../wire/discovery-stream.ts";
import { deltaResponse, responseSize, sotwResponse } from "../wire/response-frame.ts";
import { type MessageBytes, messageSize, SharedBlocks } from "../wire/shared-blocks.ts";
import type { Diff } from "./diff.ts";

/** A response as bytes. Streams that are sent the same content share it, nonce and all: a nonce has to be new to its stream only. */
export interface Frame {
  readonly sequence: number;
  readonly nonce: string;
  readonly message: MessageBytes;
  readonly size: number;
  /** The request that acknowledges it and says nothing else, as clients write it; where that depends on more than the frame, none. */
  readonly ack: Uint8Array | undefined;
}

export interface FrameRequest {
  readonly variant: DiscoveryVariant;
  readonly typeUrl: string;
  readonly version: string;
  readonly content: Diff;
  /** The frame must be newer than the last one of its type on the stream. */
  readonly after: number;
}

export interface Frames {
  frame(request: FrameRequest): Frame;
  /** How long the response will be, but for a few bytes. Cheap after the first call for a difference. */
  size(content: Diff): number;
  /** Forgets the frames that nobody was sent since the last call: called now and then, so that a push leaves nothing behind. */
  age(): void;
  /** Forgets all that others might be sent too: memory is short. */
  forget(): void;
}

type KeptFrame = Frame & Pick<FrameRequest, "variant" | "typeUrl" | "version"> & { used: boolean };

/** Bytes of frames kept for the next stream that is sent the same, those that frames share counted once. */
const KEPT_BYTES = 16 * 1024 * 1024;
const RECENT_DIFFS = 8;

/** Builds responses, each once for all streams that need it. */
export function createFrames(controlPlane: string): Frames {
  const kept = new KeptFrames();
  const sizes = new WeakMap<Diff, number>();
  const recent: Diff[] = [];
  const blocks = new SharedBlocks();
  let sequence = 0;

  /** Streams with exceptions make their own differences, which are often equal: found among the last few. */
  const canonical = (diff: Diff): Diff => {
    const known = recent.find((other) => other === diff || sameDiff(other, diff));
    if (known !== undefined) return known;
    recent.push(diff);
    if (recent.length > RECENT_DIFFS) recent.shift();
    return diff;
  };
  return {
    frame({ variant, typeUrl, version, content: wanted, after }) {
      const diff = canonical(wanted);
      const cached = kept.get(diff);
      const fits = cached?.typeUrl === typeUrl && cached.variant === variant && cached.version === version && cached.sequence > after;
      if (cached !== undefined && fits) {
        cached.used = true;
        return cached;
      }
      sequence += 1;
      const nonce = sequence.toString(36);
      const build = variant === "delta" ? deltaResponse : sotwResponse;
      const content = { typeUrl, version, resources: diff.changed, removed: diff.removed, nonce, controlPlane };
      const message = build(content, blocks);
      const ack = variant === "delta" ? deltaAck(typeUrl, nonce) : undefined;
      const frame = { used: true, variant, typeUrl, version, sequence, nonce, message, size: messageSize(message), ack };
      kept.keep(diff, frame);
      return frame;
    },
    size(content) {
      let size = sizes.get(content);
      if (size === undefined) {
        size = responseSize(content.changed, content.removed);
        sizes.set(content, size);
      }
      return size;
    },
    age() {
      kept.age();
      recent.length = 0;
    },
    forget() {
      kept.age();
      kept.age(); // Twice: what was used since the last call is forgotten too.
      recent.length = 0;
      blocks.clear();
    },
  };
}

/** Frames that others may be sent too, the most recent ones within the bytes there are for them. */
class KeptFrames {
  readonly #frames = new Map<Diff, KeptFrame>();
  readonly #held = new HeldBytes();

  get(diff: Diff): KeptFrame | undefined {
    return this.#frames.get(diff);
  }

  keep(diff: Diff, frame: KeptFrame): void {
    this.#forget(diff);
    this.#frames.set(diff, frame);
    for (const bytes of frame.message) this.#held.add(bytes);
    for (const oldest of this.#frames.keys()) {
      if (this.#held.size <= KEPT_BYTES || oldest === diff) break;
      this.#forget(oldest);
    }
  }

  /** Forgets those that nobody was sent since the last call. */
  age(): void {
    for (const [diff, frame] of this.#frames) {
      if (!frame.used) this.#forget(diff);
      frame.used = false;
    }
  }

  #forget(diff: Diff): void {
    for (const bytes of this.#frames.get(diff)?.message ?? []) this.#held.drop(bytes);
    this.#frames.delete(diff);
  }
}

/** Buffers that several messages may hold, and their size together. */
class HeldBytes {
  readonly #holders = new Map<Uint8Array, number>();
  size = 0;

  add(bytes: Uint8Array): void {
    const holders = this.#holders.get(bytes) ?? 0;
    if (holders === 0) this.size += bytes.length;
    this.#holders.set(bytes, holders + 1);
  }

  drop(bytes: Uint8Array): void {
    const holders = this.#holders.get(bytes) ?? 0;
    if (holders > 1) this.#holders.set(bytes, holders - 1);
    else if (this.#holders.delete(bytes)) this.size -= bytes.length;
  }
}

const sameDiff = (a: Diff, b: Diff): boolean =>
  a.changed.length === b.changed.length &&
  a.removed.length === b.removed.length &&
  a.changed.every((resource, index) => resource === b.changed[index]) &&
  a.removed.every((name, index) => name === b.removed[index]);
