import type { Assembly, SeenResource, SeenResources, SeenResponse, Span } from "./seen-resources.ts";

export interface WalkEvents {
  /** A whole message has come, of so many bytes. */
  message(response: SeenResponse, nonce: string, bytes: number): void;
}

const PREFIX = 5;
const CUT = -1;
const DELIMITED = 2;
/** What a resource says of itself before its content, name and version, takes less. */
const HEAD = 512;

/**
 * Walks over the bytes of the delta responses of one stream as they come, in pieces of any size. Of a resource whose version is known only the beginning is
 * looked at, whether the rest is there or not; what is new is put together once for all streams that are being sent it.
 */
export class ResponseWalker {
  readonly #seen: SeenResources;
  readonly #events: WalkEvents;
  /** What could not be read for want of more, and how much of it there has to be. */
  #parts: Buffer[] = [];
  #held = 0;
  #wanted = 0;
  /** Bytes of a known resource that are still to come. */
  #skip = 0;
  /** A new resource of which more is to come, and how much has. */
  #joint: { readonly assembly: Assembly; offset: number } | undefined;
  /** Bytes of the message that have not been walked over; CUT between messages. */
  #left = CUT;
  #size = 0;
  #typeUrl = "";
  #nonce = "";
  #resources: SeenResource[] = [];
  #removed: string[] = [];
  /** Where the last number that was read ends. */
  #at = 0;

  constructor(seen: SeenResources, events: WalkEvents) {
    this.#seen = seen;
    this.#events = events;
  }

  /** Takes the next bytes of the stream. They are not held on to. */
  take(bytes: Buffer): void {
    if (this.#skip > bytes.length) {
      this.#skip -= bytes.length;
      return;
    }
    let at = this.#joint === undefined ? this.#skip : this.#join(bytes, this.#joint);
    this.#skip = 0;
    if (this.#held > 0) {
      this.#gather(bytes);
      return;
    }
    for (let next = this.#step(bytes, at); next !== CUT; next = this.#step(bytes, at)) at = next;
    if (at < bytes.length) this.#hold(bytes.subarray(at));
  }

  #gather(bytes: Buffer): void {
    this.#hold(bytes);
    if (this.#held < this.#wanted) return;
    const whole = Buffer.concat(this.#parts);
    this.#parts = [];
    this.#held = 0;
    this.take(whole);
  }

  #hold(bytes: Buffer): void {
    this.#parts.push(Buffer.from(bytes));
    this.#held += bytes.length;
  }

  /** Gives where the resource ends in these bytes, or their end. */
  #join(bytes: Buffer, joint: { readonly assembly: Assembly; offset: number }): number {
    const { assembly, offset } = joint;
    const length = Math.min(assembly.size - offset, bytes.length);
    assembly.put(offset, bytes.subarray(0, length));
    joint.offset += length;
    if (joint.offset < assembly.size) return length;
    this.#joint = undefined;
    this.#resources.push(assembly.resource);
    return length;
  }

  /** Where the next step begins; CUT where more has to come first. */
  #step(bytes: Buffer, at: number): number {
    if (this.#skip > 0 || this.#joint !== undefined) return CUT;
    if (this.#left === 0) this.#finish();
    const there = bytes.length - at;
    if (there === 0) return CUT;
    if (this.#left < 0) return this.#open(bytes, at);
    const tag = this.#number(bytes, at);
    const value = tag === CUT ? CUT : this.#number(bytes, this.#at);
    if (value === CUT) return this.#want(there + 1);
    const delimited = (tag & 7) === DELIMITED;
    const [start, end] = [this.#at, delimited ? this.#at + value : this.#at];
    const wanted = tag >>> 3 === 2 ? this.#resource(bytes, start, end) : this.#field(tag, { bytes, start, end });
    if (wanted > 0) return this.#want(Math.min(wanted + there, end - at));
    this.#left -= end - at;
    return Math.min(end, bytes.length);
  }

  #open(bytes: Buffer, at: number): number {
    if (bytes.length - at < PREFIX) return this.#want(PREFIX);
    this.#size = bytes.readUInt32BE(at + 1);
    this.#left = this.#size;
    return at + PREFIX;
  }

  /** Takes in a field that is no resource; gives how many more bytes it needs for that. */
  #field(tag: number, { bytes, start, end }: Span): number {
    if (end > bytes.length) return end - bytes.length;
    if (tag >>> 3 === 4) this.#typeUrl = bytes.toString("latin1", start, end);
    else if (tag >>> 3 === 5) this.#nonce = bytes.toString("latin1", start, end);
    else if (tag >>> 3 === 6) this.#removed.push(bytes.toString("utf8", start, end));
    return 0;
  }

  /** Takes in a resource, or the beginning of one; gives how many more bytes it needs for that. */
  #resource(bytes: Buffer, start: number, end: number): number {
    const version = this.#version(bytes, start, end);
    const known = typeof version === "number" ? undefined : this.#seen.known(version, this.#resources.at(-1));
    if (known !== undefined) {
      this.#resources.push(known);
      this.#skip = Math.max(0, end - bytes.length);
    } else if (end <= bytes.length) this.#resources.push(this.#seen.take(bytes, [start, end]));
    else if (typeof version === "number") return version;
    else {
      const assembly = this.#seen.assembly(bytes.toString("latin1", version.start, version.end), end - start);
      assembly.put(0, bytes.subarray(start));
      this.#joint = { assembly, offset: bytes.length - start };
    }
    return 0;
  }

  /** Where the version of a resource is that begins here, if content follows it; otherwise how many more bytes are needed to take it in. */
  #version(bytes: Buffer, start: number, end: number): Span | number {
    for (let at = start; at < end; ) {
      const tag = this.#number(bytes, at);
      const length = tag === CUT ? CUT : this.#number(bytes, this.#at);
      if (length === CUT) return HEAD;
      const stop = this.#at + length;
      // Where content comes first, the rest of it is waited for.
      if ((tag & 7) !== DELIMITED || tag >>> 3 === 2) return end - bytes.length;
      if (stop > bytes.length) return HEAD;
      if (tag >>> 3 === 1) return stop < end ? { bytes, start: this.#at, end: stop } : end - bytes.length;
      at = stop;
    }
    return end - bytes.length;
  }

  #want(bytes: number): number {
    this.#wanted = bytes;
    return CUT;
  }

  #finish(): void {
    const response = this.#seen.response(this.#typeUrl, this.#resources, this.#removed);
    const [nonce, size] = [this.#nonce, this.#size];
    this.#left = CUT;
    this.#typeUrl = "";
    this.#nonce = "";
    this.#resources = [];
    this.#removed = [];
    this.#events.message(response, nonce, size);
  }

  /** A varint, of which `#at` then is the end; CUT where some of it is not there. */
  #number(bytes: Buffer, from: number): number {
    let [value, scale] = [0, 1];
    for (let at = from; at < bytes.length; at++, scale *= 128) {
      const byte = bytes[at] ?? 0;
      value += (byte & 127) * scale;
      if (byte < 128) {
        this.#at = at + 1;
        return value;
      }
    }
    return CUT;
  }
}
