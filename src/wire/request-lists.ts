import type { BinaryReader } from "@bufbuild/protobuf/wire";
import { eachField } from "./field-reader.ts";

/** Where entries of a repeated field stand in a message: from, to, from, to … */
export type Ranges = ArrayLike<number>;

/** Longer lists are not waited for again. */
const KEPT_NUMBERS = 64 * 1024;

/** Notes ranges of one message after the other without leaving anything behind: every proxy that comes sends thousands of entries. */
export class RangeNotes {
  #numbers = new Int32Array(256);
  #length = 0;

  add(from: number, to: number): void {
    if (this.#length === this.#numbers.length) {
      const larger = new Int32Array(2 * this.#length);
      larger.set(this.#numbers);
      this.#numbers = larger;
    }
    this.#numbers[this.#length] = from;
    this.#numbers[this.#length + 1] = to;
    this.#length += 2;
  }

  /** What was noted since the last call. Good until more is noted. */
  take(): Ranges {
    const ranges = this.#numbers.subarray(0, this.#length);
    this.#length = 0;
    if (this.#numbers.length > KEPT_NUMBERS) this.#numbers = new Int32Array(256);
    return ranges;
  }
}

/** Reads the long lists of discovery requests. Throws on malformed bytes. */
export interface RequestLists {
  /** Names of resources. */
  names(bytes: Uint8Array, ranges: Ranges): readonly string[];
  /** Versions by name that a client says it holds. */
  versions(bytes: Uint8Array, ranges: Ranges): ReadonlyMap<string, string>;
}

const NO_NAMES: readonly string[] = [];
const NO_VERSIONS: ReadonlyMap<string, string> = new Map();

/** Reads each list anew. */
export const plainLists: RequestLists = {
  names(bytes, ranges) {
    if (ranges.length === 0) return NO_NAMES;
    const names: string[] = [];
    for (let at = 0; at < ranges.length; at += 2) names.push(utf8.decode(bytes.subarray(ranges[at], ranges[at + 1])));
    return names;
  },
  versions(bytes, ranges) {
    if (ranges.length === 0) return NO_VERSIONS;
    const versions = new Map<string, string>();
    const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    for (let at = 0; at < ranges.length; at += 2) {
      const from = ranges[at] ?? 0;
      const to = ranges[at + 1] ?? 0;
      const version = versionStart(bytes, from, to);
      if (version === undefined) versions.set(...readPair(bytes.subarray(from, to)));
      else versions.set(buffer.toString("utf8", from + 2, version - 2), buffer.toString("utf8", version, to));
    }
    return versions;
  },
};

const [NAME_TAG, VERSION_TAG] = [0x0a, 0x12];

/** Where the version begins in an entry with a name and a version of less than 128 bytes each, as nearly all are; undefined for others. */
function versionStart(bytes: Uint8Array, from: number, to: number): number | undefined {
  const nameLength = bytes[from + 1] ?? 0;
  if (bytes[from] !== NAME_TAG || nameLength >= 128) return undefined;
  const version = from + 2 + nameLength + 2;
  const length = bytes[version - 1] ?? 0;
  return version <= to && bytes[version - 2] === VERSION_TAG && length < 128 && version + length === to ? version : undefined;
}

function readPair(entry: Uint8Array): [name: string, version: string] {
  const pair: [string, string] = ["", ""];
  eachField(entry, (field, reader) => {
    if (field === 1) pair[0] = reader.string();
    else if (field === 2) pair[1] = reader.string();
    else return false;
    return true;
  });
  return pair;
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Different lists that are remembered while some stream holds them: those of as many classes of proxies. */
const REMEMBERED = 256;
/** Shorter ones are read faster than they are looked up. */
const SHORTEST = 2 * 16;

/**
 * Reads lists so that equal ones are one object, whatever their order, and that of the first who sent one. Proxies of a class ask for the same thousand
 * names, and after a restart say that they hold the same thousand versions, each in an order of its own: the bytes are only summed up, and read
 * where no client has said the same before.
 *
 * The sums are made with secrets of this process: who does not know them cannot make a list that passes for that of another.
 */
export function sharedLists(): RequestLists {
  const secrets = crypto.getRandomValues(new Int32Array(5));
  const shared = <T extends object>(read: (bytes: Uint8Array, ranges: Ranges) => T): ((bytes: Uint8Array, ranges: Ranges) => T) => {
    const known = new Map<string, WeakRef<T>>();
    return (bytes, ranges) => {
      if (ranges.length < SHORTEST) return read(bytes, ranges);
      const id = sumOf(bytes, ranges, secrets);
      const before = known.get(id)?.deref();
      if (before !== undefined) return before;
      const list = read(bytes, ranges);
      known.delete(id);
      known.set(id, new WeakRef(list));
      if (known.size > REMEMBERED) known.delete(known.keys().next().value ?? "");
      return list;
    };
  };
  return { names: shared(plainLists.names), versions: shared(plainLists.versions) };
}

/**
 * The same for the same entries in any order. All that proxies say they hold after a restart goes through here, so it takes eight bytes at a time and the
 * two words of them in sums that do not wait for each other; each word goes into two sums by factors that are secret, so that nobody can choose what levels out.
 */
function sumOf(bytes: Uint8Array, ranges: Ranges, secrets: Int32Array): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  // One by one: taken apart as a list they are not known to be integers, and all that follows takes nearly twice as long.
  const first = secrets[0] ?? 0;
  const second = secrets[1] ?? 0;
  const factor = (secrets[2] ?? 0) | 1;
  const otherFactor = (secrets[3] ?? 0) | 1;
  const lastFactor = (secrets[4] ?? 0) | 1;
  let sumA = 0;
  let sumB = 0;
  let sumC = 0;
  for (let at = 0; at < ranges.length; at += 2) {
    const from = ranges[at] ?? 0;
    const to = ranges[at + 1] ?? 0;
    const last = to - 8;
    let a = first ^ (to - from);
    let b = second;
    let c = second ^ (to - from);
    let d = first;
    if (last < from) {
      for (let index = from; index < to; index++) {
        const x = bytes[index] ?? 0;
        a = Math.imul(a ^ x, factor);
        a ^= a >>> 13;
        b = Math.imul(b + x, otherFactor);
        b ^= b >>> 15;
      }
    } else {
      // The last eight bytes may overlap those before them: how long an entry is, which is part of the sum, says how far.
      for (let index = from; ; index += 8) {
        if (index > last) index = last;
        const x = view.getInt32(index, true);
        const y = view.getInt32(index + 4, true);
        a = Math.imul(a ^ x, factor);
        a ^= a >>> 13;
        b = Math.imul(b + x, otherFactor);
        b ^= b >>> 15;
        c = Math.imul(c ^ y, factor);
        c ^= c >>> 13;
        d = Math.imul(d + y, otherFactor);
        d ^= d >>> 15;
        if (index === last) break;
      }
    }
    a = Math.imul(a ^ d, lastFactor);
    a ^= a >>> 13;
    b = Math.imul(b + c, lastFactor);
    b ^= b >>> 15;
    sumA = (sumA + a) | 0;
    sumB = (sumB + b) | 0;
    sumC = (sumC + Math.imul(a ^ second, b | 1)) | 0;
  }
  return `${ranges.length} ${sumA} ${sumB} ${sumC}`;
}

/**
 * Notes where the entries of a repeated field stand, from the one whose tag was just read to the last that follows it immediately, and steps over them.
 * Most of a long request is one such run. Throws where an entry goes beyond the end.
 */
export function noteRanges(
  bytes: Uint8Array,
  { field, reader }: { readonly field: number; readonly reader: BinaryReader },
  notes: RangeNotes,
): void {
  const tag = (field << 3) | 2;
  let at = reader.pos;
  do {
    let length = bytes[at] ?? 0;
    if (length < 128) at += 1;
    else {
      reader.pos = at;
      length = reader.uint32();
      at = reader.pos;
    }
    if (at + length > reader.len) throw new RangeError("a field goes beyond the end of its message");
    notes.add(at, at + length);
    at += length;
  } while (bytes[at++] === tag);
  reader.pos = at - 1;
}
