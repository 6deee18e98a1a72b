/** The bytes of one message, in order, as buffers that other messages may share. */
export type MessageBytes = readonly Uint8Array[];

interface Block {
  readonly parts: readonly Uint8Array[];
  readonly bytes: Buffer;
  used: boolean;
}

/** A run below this is copied: many small buffers cost the network more than the copy. */
const SMALLEST_BLOCK = 32 * 1024;
/**
 * Of the parts after which a run is long enough, one in so many ends it. The fewer do, the sooner two messages that differ somewhere are cut alike again,
 * since it is the more likely that both end their runs at the same one.
 */
const CUT_ONE_IN = 16;
/** Bytes of blocks that are kept for the next message. */
const KEPT_BYTES = 12 * 1024 * 1024;

/**
 * Puts messages together from thousands of small parts without copying what another message has copied already. Responses to different classes
 * of proxies consist of the same resources but for a few: the parts are cut into runs, and a run of the same parts is one buffer for all.
 */
export class SharedBlocks {
  readonly #blocks = new Map<Uint8Array, Block>();
  #bytes = 0;

  /** The parts of all sections, in order. Nothing is shared across the border of a section, so what differs between messages stands in one of its own. */
  assemble(sections: readonly (readonly Uint8Array[])[]): MessageBytes {
    const message: Uint8Array[] = [];
    let loose: Uint8Array[] = [];
    const settle = (): void => {
      if (loose.length > 0) message.push(Buffer.concat(loose));
      loose = [];
    };
    const take = (run: readonly Uint8Array[], size: number): void => {
      const block = size < SMALLEST_BLOCK ? undefined : this.#blockOf(run, size);
      if (block === undefined) {
        for (const part of run) loose.push(part);
        return;
      }
      settle();
      message.push(block);
    };
    for (const parts of sections) eachRun(parts, take);
    settle();
    return message;
  }

  /** Forgets what was not used since the last call. */
  age(): void {
    for (const [first, block] of this.#blocks) {
      if (!block.used) this.#forget(first, block);
      block.used = false;
    }
  }

  #keep(first: Uint8Array, block: Block): void {
    const replaced = this.#blocks.get(first);
    if (replaced !== undefined) this.#forget(first, replaced);
    this.#blocks.set(first, block);
    this.#bytes += block.bytes.length;
    for (const [oldest, other] of this.#blocks) {
      if (this.#bytes <= KEPT_BYTES) break;
      this.#forget(oldest, other);
    }
  }

  #forget(first: Uint8Array, block: Block): void {
    this.#blocks.delete(first);
    this.#bytes -= block.bytes.length;
  }

  #blockOf(parts: readonly Uint8Array[], size: number): Buffer | undefined {
    const [first] = parts;
    if (first === undefined) return undefined;
    let block = this.#blocks.get(first);
    if (block === undefined || !sameParts(block.parts, parts)) {
      const bytes = Buffer.allocUnsafeSlow(size);
      let at = 0;
      for (const part of parts) {
        bytes.set(part, at);
        at += part.length;
      }
      block = { parts, bytes, used: true };
      this.#keep(first, block);
    }
    block.used = true;
    return block.bytes;
  }
}

/**
 * Cuts by what the parts are, not by where they stand: where a part more or less stands in one message, the runs soon are those of the others
 * again.
 */
function eachRun(parts: readonly Uint8Array[], take: (run: readonly Uint8Array[], size: number) => void): void {
  let from = 0;
  let size = 0;
  for (let at = 0; at < parts.length; at++) {
    const part = parts[at];
    if (part === undefined) continue;
    size += part.length;
    if (size < SMALLEST_BLOCK || fingerprint(part) % CUT_ONE_IN !== 0) continue;
    take(parts.slice(from, at + 1), size);
    from = at + 1;
    size = 0;
  }
  if (from < parts.length) take(from === 0 ? parts : parts.slice(from), size);
}

/** Resources and their pieces begin with their names. */
const NAMING_BYTES = 64;

/** A number that differs between most parts: from how they begin, since a look at all of them would cost as much as copying. */
function fingerprint(part: Uint8Array): number {
  let mixed = part.length;
  const end = Math.min(NAMING_BYTES, part.length);
  for (let at = 0; at < end; at++) mixed = (Math.imul(mixed, 31) + (part[at] ?? 0)) >>> 0;
  return (Math.imul(mixed, 0x9e3779b1) >>> 16) & 0xffff;
}

const sameParts = (a: readonly Uint8Array[], b: readonly Uint8Array[]): boolean =>
  a.length === b.length && a.every((part, index) => part === b[index]);

export const messageSize = (message: MessageBytes): number => message.reduce((sum, { length }) => sum + length, 0);
