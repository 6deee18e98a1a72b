import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import type { RawObject } from "./object.ts";
import type { FieldPath } from "./problem.ts";

/** Searching longer texts would hold up everything else; their problems get the line of the document. */
const LONGEST_TEXT = 512 * 1024;

/** Finds the line of a field in the file a document came from. The text is parsed at the first question, once. */
export function lineFinder(raw: RawObject): (path: FieldPath) => number | undefined {
  const first = raw.origin.line;
  let find: ((path: FieldPath) => number) | undefined;
  return (path) => {
    if (first === undefined || raw.text === undefined || raw.text.length > LONGEST_TEXT || path.length === 0) return first;
    find ??= searcher(raw.text);
    return first + find(path) - 1;
  };
}

/** Line (from 1) of the field, or of the nearest thing above it that is there. */
function searcher(text: string): (path: FieldPath) => number {
  const lines = new LineCounter();
  let root: Node | null;
  try {
    root = parseDocument(text, { lineCounter: lines, keepSourceTokens: false, logLevel: "silent", uniqueKeys: false }).contents;
  } catch {
    root = null;
  }
  return (path) => {
    let node: unknown = root;
    let offset = rangeOf(root) ?? 0;
    for (const part of path) {
      const next = memberOf(node, part);
      if (next === undefined) break;
      offset = rangeOf(next.mark) ?? offset;
      node = next.node;
    }
    return lines.linePos(offset).line;
  };
}

/** The member of a map or list, with the node that marks its place: the key, or the element itself. */
function memberOf(node: unknown, part: string | number): { readonly node: unknown; readonly mark: unknown } | undefined {
  if (isSeq(node)) {
    const item = typeof part === "number" ? node.items[part] : undefined;
    return item === undefined ? undefined : { node: item, mark: item };
  }
  if (!isMap(node)) return undefined;
  const pair = node.items.find((one) => isScalar(one.key) && String(one.key.value) === String(part));
  return pair === undefined ? undefined : { node: pair.value, mark: pair.key };
}

const rangeOf = (node: unknown): number | undefined =>
  typeof node === "object" && node !== null ? (node as Partial<Node>).range?.[0] : undefined;
