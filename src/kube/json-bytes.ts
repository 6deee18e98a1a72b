/** Which members of JSON objects are read: of those named what is said of each, of all others everything or nothing. Of a list, it is said of its elements. */
export interface Picked {
  readonly members: readonly PickedMember[];
  readonly others: boolean;
}

interface PickedMember {
  readonly name: Buffer;
  /** Everything (true), nothing (false), or parts of it. */
  readonly what: Picked | boolean;
}

/** Reads what is at these paths (`spec.containers.ports`) and nothing else. */
export function pickOnly(paths: readonly string[]): Picked {
  return pickedOf(
    paths.map((path) => path.split(".")),
    { named: true, others: false },
  );
}

/** Reads everything but what is at these paths. */
export function pickAllBut(paths: readonly string[]): Picked {
  return pickedOf(
    paths.map((path) => path.split(".")),
    { named: false, others: true },
  );
}

function pickedOf(paths: readonly (readonly string[])[], how: { readonly named: boolean; readonly others: boolean }): Picked {
  const byFirst = Map.groupBy(paths, ([first = ""]) => first);
  const members = [...byFirst].map(([first, group]): PickedMember => {
    const rests = group.map(([, ...rest]) => rest);
    return { name: Buffer.from(first), what: rests.some((rest) => rest.length === 0) ? how.named : pickedOf(rests, how) };
  });
  return { members, others: how.others };
}

const [OBJECT, OBJECT_END, LIST, LIST_END] = [0x7b, 0x7d, 0x5b, 0x5d];
const [QUOTE, BACKSLASH, COLON, COMMA, SPACE] = [0x22, 0x5c, 0x3a, 0x2c, 0x20];

/** From the byte that opens an object or a list to the one that closes it. */
const CLOSES = 2;

/** More bytes have to come before it can be told. Thrown for every part of a list that comes, so there is one, which costs no stack. */
export const TOO_SHORT = new Error("it ends too soon");

/** Where a member or an element begins, or what holds it ends. */
export interface Next {
  readonly at: number;
  readonly isEnd: boolean;
}

/** What is picked of a value. */
export interface Compacted {
  readonly text: string;
  /** Where the value ends. */
  readonly end: number;
}

/**
 * Walks JSON as bytes and says where values begin and end. What is in them is looked at no further than needed, so text that is no JSON may pass: parsing
 * what was found tells. Throws where it cannot go on: `TOO_SHORT` where that may be because the rest is still to come.
 */
export class JsonBytes {
  readonly #bytes: Buffer;
  /** Where what is kept of a value is put together. */
  readonly #kept: Buffer;
  /** Where what was walked last ended. */
  #end = 0;
  /** Where the next byte of what is kept goes. */
  #out = 0;

  /** `scratch` has room for all of the bytes; what it holds is used up. */
  constructor(bytes: Buffer, scratch: Buffer) {
    this.#bytes = bytes;
    this.#kept = scratch;
  }

  text(from: number, to: number): string {
    return this.#bytes.toString("utf8", from, to);
  }

  /** Goes into the object that begins at `at`, after space. */
  enterObject(at: number): number {
    return this.#after(this.#afterSpace(at), OBJECT);
  }

  isList(at: number): boolean {
    return this.#bytes[at] === LIST;
  }

  /** What comes next in an object, after its beginning or after a member of it. */
  nextMember(at: number, isFirst: boolean): Next {
    return this.#nextIn(at, OBJECT, isFirst);
  }

  /** The same in a list. */
  nextElement(at: number, isFirst: boolean): Next {
    return this.#nextIn(at, LIST, isFirst);
  }

  /** The name of the member that begins at `at`, and where its value does. */
  member(at: number): { readonly name: string; readonly value: number } {
    const nameEnd = this.#endOfString(at);
    const value = this.#valueAfter(nameEnd);
    if (value >= this.#bytes.length) throw TOO_SHORT;
    return { name: this.text(at + 1, nameEnd - 1), value };
  }

  /** Where the value ends that begins at `at`. One that ends with the bytes is not known to end there. */
  endOf(at: number): number {
    const end = this.#endOf(at);
    if (end >= this.#bytes.length) throw TOO_SHORT;
    return end;
  }

  /** What is picked of the value at `at`. */
  compact(at: number, picked: Picked): Compacted {
    this.#out = 0;
    const end = this.#keep(at, picked);
    if (end >= this.#bytes.length) throw TOO_SHORT;
    return { text: this.#kept.toString("utf8", 0, this.#out), end };
  }

  #nextIn(at: number, kind: number, isFirst: boolean): Next {
    this.#end = at;
    const next = isFirst ? this.#firstAfter(at, kind) : this.#next(kind);
    if (next >= this.#bytes.length) throw TOO_SHORT;
    return next < 0 ? { at: this.#end, isEnd: true } : { at: next, isEnd: false };
  }

  /** Copies what is picked of a value. Returns the end of the value. */
  #keep(at: number, picked: Picked): number {
    const first = this.#bytes[at];
    if (first === OBJECT) return this.#keepMembers(at, picked);
    if (first === LIST) return this.#keepElements(at, picked);
    const end = this.#endOf(at);
    this.#copy(at, end);
    return end;
  }

  #keepMembers(at: number, picked: Picked): number {
    let separator = OBJECT;
    let name = this.#firstAfter(at + 1, OBJECT);
    for (; name >= 0; name = this.#next(OBJECT)) {
      const nameEnd = this.#endOfString(name);
      const value = this.#valueAfter(nameEnd);
      const what = this.#pickedOf(picked, name + 1, nameEnd - 1);
      if (what !== false) {
        this.#put(separator);
        separator = COMMA;
      }
      if (typeof what === "boolean") {
        this.#end = this.#endOf(value);
        if (what) this.#copy(name, this.#end);
      } else {
        this.#copy(name, value);
        this.#end = this.#keep(value, what);
      }
    }
    if (separator === OBJECT) this.#put(OBJECT);
    this.#put(OBJECT_END);
    return this.#end;
  }

  #keepElements(at: number, picked: Picked): number {
    let separator = LIST;
    for (let element = this.#firstAfter(at + 1, LIST); element >= 0; element = this.#next(LIST)) {
      this.#put(separator);
      separator = COMMA;
      this.#end = this.#keep(element, picked);
    }
    if (separator === LIST) this.#put(LIST);
    this.#put(LIST_END);
    return this.#end;
  }

  #put(byte: number): void {
    this.#kept[this.#out] = byte;
    this.#out += 1;
  }

  #copy(from: number, to: number): void {
    this.#bytes.copy(this.#kept, this.#out, from, to);
    this.#out += to - from;
  }

  /** What is picked of a member. Names are compared as they are written: nobody escapes letters in those that are named here. */
  #pickedOf({ members, others }: Picked, from: number, to: number): Picked | boolean {
    for (const { name, what } of members) if (this.#isAt(name, from, to)) return what;
    return others;
  }

  #isAt(name: Buffer, from: number, to: number): boolean {
    if (name.length !== to - from) return false;
    for (let index = 0; index < name.length; index++) if (name[index] !== this.#bytes[from + index]) return false;
    return true;
  }

  /** Where the first member or element begins, after what opens; -1 where there is none, and then `#end` is the end of it all. */
  #firstAfter(at: number, kind: number): number {
    const first = this.#afterSpace(at);
    if (this.#bytes[first] !== kind + CLOSES) return first;
    this.#end = first + 1;
    return -1;
  }

  /** The same for the one after the member or element that ends at `#end`. */
  #next(kind: number): number {
    const end = this.#afterSpace(this.#end);
    const byte = this.#bytes[end];
    if (byte === COMMA) return this.#afterSpace(end + 1);
    if (byte !== kind + CLOSES) throw this.#unexpected(end);
    this.#end = end + 1;
    return -1;
  }

  #valueAfter(nameEnd: number): number {
    return this.#afterSpace(this.#after(this.#afterSpace(nameEnd), COLON));
  }

  #endOf(at: number): number {
    const bytes = this.#bytes;
    if (bytes[at] === QUOTE) return this.#endOfString(at);
    if (bytes[at] !== OBJECT && bytes[at] !== LIST) return this.#endOfScalar(at);
    let depth = 0;
    for (let index = at; index < bytes.length; index++) {
      const byte = bytes[index];
      if (byte === QUOTE) index = this.#endOfString(index) - 1;
      else if (byte === OBJECT || byte === LIST) depth += 1;
      else if (byte === OBJECT_END || byte === LIST_END) {
        depth -= 1;
        if (depth === 0) return index + 1;
      }
    }
    throw TOO_SHORT;
  }

  #endOfString(at: number): number {
    const bytes = this.#bytes;
    for (let index = this.#after(at, QUOTE); index < bytes.length; index++) {
      const byte = bytes[index];
      if (byte === BACKSLASH) index += 1;
      else if (byte === QUOTE) return index + 1;
    }
    throw TOO_SHORT;
  }

  /** A number or a word. */
  #endOfScalar(at: number): number {
    const bytes = this.#bytes;
    let index = at;
    for (; index < bytes.length; index++) {
      const byte = bytes[index] ?? 0;
      if (byte === COMMA || byte === OBJECT_END || byte === LIST_END || byte <= SPACE) break;
    }
    if (index === at) throw this.#unexpected(at);
    return index;
  }

  #afterSpace(at: number): number {
    let index = at;
    while (index < this.#bytes.length && (this.#bytes[index] ?? 0) <= SPACE) index += 1;
    return index;
  }

  #after(at: number, byte: number): number {
    if (this.#bytes[at] !== byte) throw this.#unexpected(at);
    return at + 1;
  }

  #unexpected(at: number): Error {
    return at < this.#bytes.length ? new Error(`byte ${at} is not what JSON has there`) : TOO_SHORT;
  }
}
