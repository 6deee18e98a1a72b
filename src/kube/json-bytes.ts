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

/** A value that was made smaller in place. */
export interface Compacted {
  /** Where what is left of it ends. */
  readonly end: number;
  /** Where it ended. */
  readonly before: number;
}

/**
 * Walks JSON as bytes and says where values begin and end. What is in them is looked at no further than needed, so text that is no JSON may pass: parsing
 * what was found tells. Throws where it cannot go on.
 */
export class JsonBytes {
  readonly bytes: Buffer;
  /** Where what was walked last ended. */
  #end = 0;
  /** Where the next byte of what is kept goes. */
  #out = 0;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** Where the first value begins. */
  get begin(): number {
    return this.#afterSpace(0);
  }

  text(from: number, to: number): string {
    return this.bytes.toString("utf8", from, to);
  }

  /** Visits the members of an object; a visitor gets the name and where the value begins, and returns where that ends. Returns the end of the object. */
  eachMember(at: number, visit: (name: string, value: number) => number): number {
    for (let name = this.#first(at, OBJECT); ; name = this.#next(OBJECT)) {
      if (name < 0) return this.#end;
      const nameEnd = this.#endOfString(name);
      this.#end = visit(this.text(name + 1, nameEnd - 1), this.#valueAfter(nameEnd));
    }
  }

  /** The same for the elements of a list; where there is no list (null), nothing is visited. */
  eachElement(at: number, visit: (element: number) => number): number {
    if (this.bytes[at] !== LIST) return this.endOf(at);
    for (let element = this.#first(at, LIST); ; element = this.#next(LIST)) {
      if (element < 0) return this.#end;
      this.#end = visit(element);
    }
  }

  /** Where the value ends that begins at `at`. */
  endOf(at: number): number {
    const { bytes } = this;
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
    throw new Error("it ends too soon");
  }

  /** Leaves of the value at `at` what is picked, moved together in its place. */
  compact(at: number, picked: Picked): Compacted {
    this.#out = at;
    const before = this.#keep(at, picked);
    return { end: this.#out, before };
  }

  /** Copies what is picked of a value to `#out`, which is never past it. Returns the end of the value. */
  #keep(at: number, picked: Picked | true): number {
    const first = this.bytes[at];
    if (picked !== true && first === OBJECT) return this.#keepMembers(at, picked);
    if (picked !== true && first === LIST) return this.#keepElements(at, picked);
    const end = this.endOf(at);
    this.#copy(at, end);
    return end;
  }

  #keepMembers(at: number, picked: Picked): number {
    let separator = OBJECT;
    let name = this.#first(at, OBJECT);
    for (; name >= 0; name = this.#next(OBJECT)) {
      const nameEnd = this.#endOfString(name);
      const value = this.#valueAfter(nameEnd);
      const what = this.#pickedOf(picked, name + 1, nameEnd - 1);
      if (what === false) this.#end = this.endOf(value);
      else {
        this.#put(separator);
        separator = COMMA;
        this.#copy(name, nameEnd);
        this.#put(COLON);
        this.#end = this.#keep(value, what);
      }
    }
    if (separator === OBJECT) this.#put(OBJECT);
    this.#put(OBJECT_END);
    return this.#end;
  }

  #keepElements(at: number, picked: Picked): number {
    let separator = LIST;
    for (let element = this.#first(at, LIST); element >= 0; element = this.#next(LIST)) {
      this.#put(separator);
      separator = COMMA;
      this.#end = this.#keep(element, picked);
    }
    if (separator === LIST) this.#put(LIST);
    this.#put(LIST_END);
    return this.#end;
  }

  #put(byte: number): void {
    this.bytes[this.#out] = byte;
    this.#out += 1;
  }

  #copy(from: number, to: number): void {
    if (this.#out !== from) this.bytes.copyWithin(this.#out, from, to);
    this.#out += to - from;
  }

  /** What is picked of a member. Names are compared as they are written: nobody escapes letters in those that are named here. */
  #pickedOf({ members, others }: Picked, from: number, to: number): Picked | boolean {
    for (const { name, what } of members) if (this.#isAt(name, from, to)) return what;
    return others;
  }

  #isAt(name: Buffer, from: number, to: number): boolean {
    if (name.length !== to - from) return false;
    for (let index = 0; index < name.length; index++) if (name[index] !== this.bytes[from + index]) return false;
    return true;
  }

  /** Where the first member or element begins of what begins at `at`; -1 where it has none, and then `#end` is its end. */
  #first(at: number, kind: number): number {
    const first = this.#afterSpace(this.#after(at, kind));
    if (this.bytes[first] !== kind + CLOSES) return first;
    this.#end = first + 1;
    return -1;
  }

  /** The same for the one after the member or element that ends at `#end`. */
  #next(kind: number): number {
    const end = this.#afterSpace(this.#end);
    const byte = this.bytes[end];
    if (byte === COMMA) return this.#afterSpace(end + 1);
    if (byte !== kind + CLOSES) throw unexpected(end);
    this.#end = end + 1;
    return -1;
  }

  #valueAfter(nameEnd: number): number {
    return this.#afterSpace(this.#after(this.#afterSpace(nameEnd), COLON));
  }

  #endOfString(at: number): number {
    const { bytes } = this;
    for (let index = this.#after(at, QUOTE); index < bytes.length; index++) {
      const byte = bytes[index];
      if (byte === BACKSLASH) index += 1;
      else if (byte === QUOTE) return index + 1;
    }
    throw new Error("it ends too soon");
  }

  /** A number or a word. */
  #endOfScalar(at: number): number {
    const { bytes } = this;
    let index = at;
    for (; index < bytes.length; index++) {
      const byte = bytes[index] ?? 0;
      if (byte === COMMA || byte === OBJECT_END || byte === LIST_END || byte <= SPACE) break;
    }
    if (index === at) throw new Error(`there is no value at byte ${at}`);
    return index;
  }

  #afterSpace(at: number): number {
    let index = at;
    while (index < this.bytes.length && (this.bytes[index] ?? 0) <= SPACE) index += 1;
    return index;
  }

  #after(at: number, byte: number): number {
    if (this.bytes[at] !== byte) throw unexpected(at);
    return at + 1;
  }
}

const unexpected = (at: number): Error => new Error(`byte ${at} is not what JSON has there`);
