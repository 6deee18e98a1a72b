import { messageOf } from "../base/errors.ts";
import { JsonBytes, type Picked, pickAllBut } from "./json-bytes.ts";
import { KubeError } from "./kube-error.ts";
import type { KubeObject } from "./resource-type.ts";

/** One page of a list. */
export interface KubePage {
  /** Parsed one by one as they are asked for, so that each can be forgotten before the next; what cannot be read is thrown then. */
  readonly items: Iterable<KubeObject>;
  /** Where the next page begins; empty on the last. */
  readonly continue: string;
  readonly resourceVersion: string;
}

/** What is read of objects where nobody says what: all but who wrote which field, often the larger half of an object. */
const READ: Picked = pickAllBut(["metadata.managedFields"]);

/**
 * The page that an answer holds; its bytes are used up. A whole page as objects is many times what is kept of it, and lives just long enough to be carried
 * into the old generation of the heap. So bytes are walked for the objects and, in each, for what is read of it; that alone is parsed.
 */
export function readPage(bytes: Buffer, picked: Picked = READ): KubePage {
  const json = new JsonBytes(bytes);
  const spans: (readonly [from: number, to: number])[] = [];
  let head: { readonly continue?: string; readonly resourceVersion?: string } = {};
  try {
    json.eachMember(json.begin, (name, at) => {
      if (name === "items")
        return json.eachElement(at, (element) => {
          const { end, before } = json.compact(element, picked);
          spans.push([element, end]);
          return before;
        });
      const end = json.endOf(at);
      if (name === "metadata") head = (JSON.parse(json.text(at, end)) as typeof head | null) ?? {};
      return end;
    });
  } catch (error) {
    throw unreadable(`the API server's answer is no list: ${messageOf(error)}`);
  }
  const items = { [Symbol.iterator]: () => objects(json, spans) };
  return { items, continue: head.continue ?? "", resourceVersion: head.resourceVersion ?? "" };
}

/** Whether something read from an API server has what every object has. */
export function isKubeObject(value: unknown): value is KubeObject {
  if (typeof value !== "object" || value === null || !("metadata" in value)) return false;
  const { metadata } = value;
  return typeof metadata === "object" && metadata !== null && "name" in metadata && typeof metadata.name === "string";
}

function* objects(json: JsonBytes, spans: readonly (readonly [from: number, to: number])[]): Generator<KubeObject, void> {
  for (const [from, to] of spans) {
    const object = parsed(json.text(from, to));
    if (isKubeObject(object)) yield object;
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw unreadable(`an object of a list cannot be read: ${messageOf(error)}`);
  }
}

const unreadable = (message: string): KubeError => new KubeError({ status: 0, reason: "Unreadable", message });
