import { anyType, anyValue, eachField, referencesOf } from "./discovery-wire.ts";

/** A resource of a response, as far as a measuring client needs to know it. Equal versions are one object. */
export interface SeenResource {
  /** By which responses with the same resources are known to be the same. */
  readonly id: number;
  readonly typeUrl: string;
  readonly name: string;
  readonly version: string;
  /** Names of resources of the next type that it makes a proxy ask for. */
  readonly refers: readonly string[];
  /** The marker that was looked for when it was first seen is in it. */
  readonly marker: string | undefined;
}

/** What a response says. Responses that say the same are one object, whoever they were sent to. */
export interface SeenResponse {
  readonly typeUrl: string;
  readonly resources: readonly SeenResource[];
  readonly removed: readonly string[];
  /** The markers of its resources. */
  readonly markers: ReadonlySet<string>;
}

/** A part of some bytes. */
export interface Span {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

/** A text by which a change is known in what proxies are sent; or all texts of its length that begin with it, of which the last in order counts. */
export interface Marker {
  readonly text: string;
  readonly length?: number;
}

/**
 * What all proxies together have been sent. Hundreds are sent the same resources: each version is looked into once, and a response whose resources have been
 * sent to another before is known by their versions alone, so that the client costs a fraction of the server it measures.
 */
export class SeenResources {
  readonly #byVersion = new Map<string, SeenResource>();
  /** What servers that give resources no version sent last, by type and name. */
  readonly #unversioned = new Map<string, { readonly any: Buffer; readonly seen: SeenResource }>();
  readonly #responses = new Map<string, SeenResponse>();
  readonly #assemblies = new Map<string, Assembly>();
  readonly #room = new Room();
  /** What came after a resource the last time; the first of a response comes after none. */
  readonly #followers = new Map<SeenResource | undefined, Follower>();
  #marker: Marker | undefined;
  #lastId = 0;

  /** Resources that are new from now on are searched for this. */
  lookFor(marker: Marker | undefined): void {
    this.#marker = marker;
  }

  /**
   * The resource whose version stands here, if it has been sent to anybody. Most often it is the one that came after `before` the last time: then its version
   * is compared where it is, and no text is made of it.
   */
  known(version: Span, before: SeenResource | undefined): SeenResource | undefined {
    const expected = this.#followers.get(before);
    if (expected !== undefined && isAt(version, expected.version)) return expected.resource;
    const found = this.#byVersion.get(version.bytes.toString("latin1", version.start, version.end));
    if (found !== undefined) this.#followers.set(before, { resource: found, version: Buffer.from(found.version, "latin1") });
    return found;
  }

  /** Where the streams that are being sent a new version put it together. */
  assembly(version: string, size: number): Assembly {
    const open = this.#assemblies.get(version);
    if (open !== undefined && open.size === size) return open;
    const assembly = new Assembly(size, this.#room, (bytes) => {
      this.#assemblies.delete(version);
      return this.take(bytes, [0, size]);
    });
    this.#assemblies.set(version, assembly);
    return assembly;
  }

  /** Takes in a whole resource (`envoy.service.discovery.v3.Resource`). */
  take(bytes: Buffer, span: readonly [start: number, end: number]): SeenResource {
    let [version, name] = ["", ""];
    let any: Buffer = EMPTY;
    eachField(bytes, span, (field, from, to) => {
      if (field === 1) version = bytes.toString("latin1", from, to);
      else if (field === 3) name = bytes.toString("utf8", from, to);
      else if (field === 2) any = bytes.subarray(from, to);
    });
    if (version === "") return this.#unversionedResource(name, any);
    const seen = this.#look({ version, name, any });
    // What has no content is not known by its version: many such may have the same.
    if (any.length > 0) this.#byVersion.set(version, seen);
    return seen;
  }

  /** The response with these resources, as one object. */
  response(typeUrl: string, resources: readonly SeenResource[], removed: readonly string[]): SeenResponse {
    const key = `${typeUrl} ${keyOf(resources)} ${removed.join(" ")}`;
    const known = this.#responses.get(key);
    if (known !== undefined) return known;
    const response = { typeUrl, resources, removed, markers: new Set(resources.flatMap(({ marker }) => marker ?? [])) };
    this.#responses.set(key, response);
    return response;
  }

  #unversionedResource(name: string, any: Buffer): SeenResource {
    const key = `${anyType(any)} ${name}`;
    const known = this.#unversioned.get(key);
    if (known?.any.equals(any) === true) return known.seen;
    const seen = this.#look({ version: "", name, any });
    this.#unversioned.set(key, { any: Buffer.from(any), seen });
    return seen;
  }

  #look({ version, name, any }: { readonly version: string; readonly name: string; readonly any: Buffer }): SeenResource {
    const [typeUrl, body] = [anyType(any), anyValue(any)];
    this.#lastId += 1;
    const marker = this.#marker && markerIn(body, this.#marker);
    return { id: this.#lastId, typeUrl, name, version, refers: referencesOf(typeUrl, body), marker };
  }
}

/**
 * A resource that comes to many at once, none of whom has it whole yet: each byte is copied from the stream that has it first. A stream that has come to the end
 * has passed all of it, so it is whole then.
 */
export class Assembly {
  readonly size: number;
  readonly #room: Room;
  readonly #bytes: Buffer;
  readonly #whole: (bytes: Buffer) => SeenResource;
  #filled = 0;
  #resource: SeenResource | undefined;

  constructor(size: number, room: Room, whole: (bytes: Buffer) => SeenResource) {
    this.size = size;
    this.#room = room;
    this.#bytes = room.take(size);
    this.#whole = whole;
  }

  /** A stream has these bytes at this place. */
  put(offset: number, bytes: Buffer): void {
    if (offset + bytes.length <= this.#filled) return;
    bytes.copy(this.#bytes, this.#filled, this.#filled - offset);
    this.#filled = offset + bytes.length;
  }

  /** To be asked for when all of it is there: its bytes are needed no more then. */
  get resource(): SeenResource {
    if (this.#resource === undefined) {
      this.#resource = this.#whole(this.#bytes);
      this.#room.giveBack(this.#bytes);
    }
    return this.#resource;
  }
}

/** What resources are put together in, one after the other: to make it anew for each would have the whole heap collected for every other change. */
class Room {
  readonly #free: Buffer[] = [];

  take(size: number): Buffer {
    const fitting = this.#free.findIndex((bytes) => bytes.length >= size);
    const [found = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(size)))] = fitting < 0 ? [] : this.#free.splice(fitting, 1);
    return found;
  }

  giveBack(bytes: Buffer): void {
    this.#free.push(bytes);
  }
}

const EMPTY = Buffer.alloc(0);

interface Follower {
  readonly resource: SeenResource;
  readonly version: Uint8Array;
}

function isAt({ bytes, start, end }: Span, text: Uint8Array): boolean {
  if (end - start !== text.length) return false;
  for (let at = 0; at < text.length; at++) if (bytes[start + at] !== text[at]) return false;
  return true;
}

/** Different for different resources, as far as two sums of 32 bits and the number can tell. */
function keyOf(resources: readonly SeenResource[]): string {
  let [one, other] = [0, 1];
  for (const { id } of resources) {
    one = (Math.imul(one ^ id, 0x01000193) + id) | 0;
    other = Math.imul(other + id, 0x5bd1e995) ^ (other >>> 13);
  }
  return `${resources.length} ${one} ${other}`;
}

function markerIn(body: Buffer, { text, length = text.length }: Marker): string | undefined {
  let last: string | undefined;
  for (let at = body.indexOf(text, 0, "latin1"); at >= 0; at = body.indexOf(text, at + 1, "latin1")) {
    const found = body.toString("latin1", at, at + length);
    if (last === undefined || found > last) last = found;
  }
  return last;
}
