import { messageOf } from "../base/errors.ts";
import { Gatherer } from "./gatherer.ts";
import { KubeError } from "./kube-error.ts";
import { isKubeObject, type ListBody, type ListHead, MOST_BYTES } from "./list-reader.ts";
import { ListTexts } from "./list-texts.ts";
import { MAGIC, RAW } from "./proto-envelope.ts";
import { type ObjectFields, type ProtoFields, protoFields } from "./proto-fields.ts";
import { ProtoBytes, readProtoObject } from "./proto-object.ts";
import type { KubeObject } from "./resource-type.ts";

/** Tags in lists: what a list says of itself, and its objects. */
const [METADATA, ITEM] = [(1 << 3) | 2, (2 << 3) | 2];
/** A tag and a length are no longer than this. */
const HEAD_BYTES = 20;

const LIST_FIELDS = protoFields({ resourceVersion: { at: 2 }, continue: { at: 3 } });

/**
 * Reads a list in protobuf while it comes. API servers make it at a fraction of what JSON costs them, and what nobody reads of an object, who wrote which
 * field above all, is stepped over without a look.
 */
export class ProtoListReader implements ListBody {
  readonly #take: (object: KubeObject) => void;
  readonly #fields: ProtoFields;
  readonly #bytes = new Gatherer((bytes) => this.#walk(bytes));
  readonly #texts = new ListTexts();
  #head: Partial<ListHead> = {};
  /** How much of the list is still to come; undefined before it begins. */
  #left: number | undefined;

  constructor(take: (object: KubeObject) => void, { proto }: Pick<ObjectFields, "proto">) {
    this.#take = take;
    this.#fields = proto;
  }

  add(chunk: Buffer): void {
    this.#bytes.add(chunk);
  }

  end(): ListHead {
    this.#bytes.flush();
    if (this.#left !== 0) throw unreadable("the API server's answer is no list: it ends too soon");
    return { continue: this.#head.continue ?? "", resourceVersion: this.#head.resourceVersion ?? "" };
  }

  #walk(bytes: Buffer): number {
    try {
      const from = new ProtoBytes(bytes, this.#texts);
      if (this.#left === undefined && !this.#begin(from)) return 0;
      while (this.#left !== undefined && this.#left > 0) {
        const before = from.at;
        if (!this.#part(from, this.#left)) return before;
        this.#left -= from.at - before;
      }
      return bytes.length;
    } catch (error) {
      throw error instanceof KubeError ? error : unreadable(`the API server's answer is no list: ${messageOf(error)}`);
    }
  }

  /** Goes to where the list begins. False where it has not come yet. */
  #begin(from: ProtoBytes): boolean {
    const { bytes } = from;
    if (bytes.length < MAGIC.length) return false;
    if (!bytes.subarray(0, MAGIC.length).equals(MAGIC)) throw new RangeError("it does not begin as protobuf of Kubernetes does");
    from.at = MAGIC.length;
    for (;;) {
      const tag = this.#headOf(from);
      if (tag === undefined) return false;
      if (tag.tag === RAW) {
        this.#left = tag.length;
        return true;
      }
      from.at += tag.length;
    }
  }

  /** Reads one field of the list. False where it has not come yet. */
  #part(from: ProtoBytes, left: number): boolean {
    const began = from.at;
    const head = this.#headOf(from);
    if (head === undefined) return false;
    const end = from.at + head.length;
    if (end - began > left) throw new RangeError("a value goes beyond the end of the list");
    if (head.length > MOST_BYTES) throw unreadable(`an object of a list is larger than ${MOST_BYTES / 1024 / 1024} MB`);
    if (end > from.bytes.length) return false;
    if (head.tag === ITEM) {
      const object = readProtoObject(from, end, this.#fields);
      if (isKubeObject(object)) this.#take(object);
    } else if (head.tag === METADATA) this.#head = readProtoObject(from, end, LIST_FIELDS);
    from.at = end;
    return true;
  }

  /** Tag and length of the next value, which is one of bytes as all are here; undefined where they have not come yet. */
  #headOf(from: ProtoBytes): { readonly tag: number; readonly length: number } | undefined {
    const left = from.bytes.length - from.at;
    if (left < HEAD_BYTES && !hasTwoNumbers(from.bytes, from.at)) return undefined;
    const tag = from.short();
    if ((tag & 7) !== 2) throw new RangeError("a field of a list is of another type");
    return { tag, length: from.short() };
  }
}

/** Whether two whole numbers follow. */
function hasTwoNumbers(bytes: Buffer, at: number): boolean {
  let ends = 0;
  for (let index = at; index < bytes.length && ends < 2; index++) if ((bytes[index] ?? 0) < 0x80) ends++;
  return ends === 2;
}

const unreadable = (message: string): KubeError => new KubeError({ status: 0, reason: "Unreadable", message });
