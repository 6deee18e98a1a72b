import { messageOf } from "../base/errors.ts";
import { Gatherer } from "./gatherer.ts";
import { JsonBytes, type Picked, pickAllBut, TOO_SHORT } from "./json-bytes.ts";
import { KubeError } from "./kube-error.ts";
import type { KubeObject } from "./resource-type.ts";

/** What a list says of itself. */
export interface ListHead {
  /** Where the next page begins; empty on the last. */
  readonly continue: string;
  readonly resourceVersion: string;
}

/** Takes a list while it comes. */
export interface ListBody {
  /** The next bytes of the list. Throws where they cannot be of one. */
  add(chunk: Buffer): void;
  /** All of it has come. Throws where that is no whole list. */
  end(): ListHead;
}

/** One page of a list. */
export interface KubePage extends ListHead {
  readonly items: readonly KubeObject[];
}

/** What is read of objects where nobody says what: all but who wrote which field, often the larger half of an object. */
const READ: Picked = pickAllBut(["metadata.managedFields"]);

/** No object of an API server is nearly as large. */
export const MOST_BYTES = 16 * 1024 * 1024;

/** Where a reader is: before the list's own members, at one of them or its end, in `items`, after all. */
type Place = "begin" | "members" | "items" | "end";

/**
 * Reads a list in JSON while it comes. A whole list as objects is many times what is kept of it, and lives just long enough to be carried into the old
 * generation of the heap; as bytes alone it may be more than there is room for. So bytes are walked for the objects and, in each, for what is read of it;
 * that alone is parsed and given away, and then forgotten.
 */
export class ListReader implements ListBody {
  readonly #take: (object: KubeObject) => void;
  readonly #picked: Picked;
  #place: Place = "begin";
  /** Nothing has been read of the object or list it is in. */
  #isFirst = true;
  #head: Partial<ListHead> = {};
  readonly #bytes = new Gatherer((bytes) => this.#walk(bytes));
  #scratch = Buffer.alloc(0);

  constructor(take: (object: KubeObject) => void, picked: Picked = READ) {
    this.#take = take;
    this.#picked = picked;
  }

  add(chunk: Buffer): void {
    this.#bytes.add(chunk);
  }

  end(): ListHead {
    this.#bytes.flush();
    if (this.#place !== "end") throw unreadable("the API server's answer is no list: it ends too soon");
    return { continue: this.#head.continue ?? "", resourceVersion: this.#head.resourceVersion ?? "" };
  }

  /** Goes as far as it can, and says how far that was. */
  #walk(bytes: Buffer): number {
    if (this.#scratch.length < bytes.length) this.#scratch = Buffer.allocUnsafe(bytes.length);
    const json = new JsonBytes(bytes, this.#scratch);
    let at = 0;
    try {
      while (this.#place !== "end") at = this.#step(json, at);
    } catch (error) {
      if (error !== TOO_SHORT) throw error instanceof KubeError ? error : noList(error);
    }
    if (this.#place === "end") return bytes.length;
    if (bytes.length - at > MOST_BYTES) throw unreadable(`an object of a list is larger than ${MOST_BYTES / 1024 / 1024} MB`);
    return at;
  }

  /** One step, which changes nothing where what it needs is not there yet. Returns where the next one begins. */
  #step(json: JsonBytes, at: number): number {
    if (this.#place === "begin") {
      const inside = json.enterObject(at);
      this.#go("members", true);
      return inside;
    }
    if (this.#place === "items") {
      const element = json.nextElement(at, this.#isFirst);
      if (!element.isEnd) return this.#object(json, element.at);
      this.#go("members", false);
      return element.at;
    }
    const member = json.nextMember(at, this.#isFirst);
    if (!member.isEnd) return this.#member(json, member.at);
    this.#go("end", true);
    return member.at;
  }

  #object(json: JsonBytes, at: number): number {
    const { text, end } = json.compact(at, this.#picked);
    const object = parsed(text);
    this.#isFirst = false;
    if (isKubeObject(object)) this.#take(object);
    return end;
  }

  #member(json: JsonBytes, at: number): number {
    const { name, value } = json.member(at);
    if (name === "items" && json.isList(value)) {
      this.#go("items", true);
      return value + 1;
    }
    const end = json.endOf(value);
    if (name === "metadata") this.#head = (JSON.parse(json.text(value, end)) as Partial<ListHead> | null) ?? {};
    this.#isFirst = false;
    return end;
  }

  #go(place: Place, isFirst: boolean): void {
    this.#place = place;
    this.#isFirst = isFirst;
  }
}

/** Whether something read from an API server has what every object has. */
export function isKubeObject(value: unknown): value is KubeObject {
  if (typeof value !== "object" || value === null || !("metadata" in value)) return false;
  const { metadata } = value;
  return typeof metadata === "object" && metadata !== null && "name" in metadata && typeof metadata.name === "string";
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw unreadable(`an object of a list cannot be read: ${messageOf(error)}`);
  }
}

const noList = (error: unknown): KubeError => unreadable(`the API server's answer is no list: ${messageOf(error)}`);
const unreadable = (message: string): KubeError => new KubeError({ status: 0, reason: "Unreadable", message });
