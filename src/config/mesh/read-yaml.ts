import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument as parseForLines } from "yaml";
import { parseDocument } from "../documents/parse-document.ts";
import { splitDocuments } from "../documents/split-documents.ts";
import type { FieldPath } from "../problem.ts";

/** The content of a YAML text, or what is wrong with it and where. */
export type YamlRead = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly message: string; readonly line: number };

/** Reads a text that holds at most one document, under the limits for documents; none is an empty map. */
export function readYaml(text: string): YamlRead {
  const [document, second] = splitDocuments(text);
  if (document === undefined) return { ok: true, value: {} };
  if (second !== undefined) return { ok: false, message: "holds more than one document", line: second.line };
  const parsed = parseDocument(document.text);
  if ("fault" in parsed) return { ok: false, message: parsed.fault, line: document.line + parsed.lineOffset };
  const [part, ...more] = parsed.parts;
  if (more.length > 0) return { ok: false, message: "is a list of objects, not a map of fields", line: document.line };
  return { ok: true, value: part?.content ?? {} };
}

/**
 * Line (1-based) of the field at `path`, or of its nearest ancestor that is written. A second, slower parser is used, so this is for texts
 * in which something was found wrong.
 */
export function lineOf(text: string, path: FieldPath): number | undefined {
  const lines = new LineCounter();
  const document = parseForLines(text, { lineCounter: lines, merge: true, uniqueKeys: false });
  let node: Node | null | undefined = document.contents;
  let offset = node?.range?.[0];
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document);
    const next: Found | undefined = typeof step === "number" ? itemAt(node, step) : valueAt(node, step);
    if (next === undefined) break;
    offset = next.offset ?? offset;
    node = next.node;
  }
  return offset === undefined ? undefined : lines.linePos(offset).line;
}

/** Whether the text has something at `path` itself. */
export function hasPath(value: unknown, path: FieldPath): boolean {
  let at = value;
  for (const step of path) {
    if (typeof at !== "object" || at === null) return false;
    const key = Object.keys(at).find((candidate) => sameField(candidate, step));
    if (key === undefined) return false;
    at = (at as Record<string, unknown>)[key];
  }
  return true;
}

interface Found {
  readonly node: Node | null | undefined;
  readonly offset: number | undefined;
}

function itemAt(node: Node | null | undefined, index: number): Found | undefined {
  if (!isSeq(node) || index >= node.items.length) return undefined;
  const item = node.items[index] as Node | null;
  return { node: item, offset: item?.range?.[0] };
}

function valueAt(node: Node | null | undefined, name: string): Found | undefined {
  if (!isMap(node)) return undefined;
  const named = (same: (written: string) => boolean) => node.items.find((item) => isScalar(item.key) && same(String(item.key.value)));
  const pair = named((written) => written === name) ?? named((written) => sameField(written, name));
  return pair === undefined ? undefined : { node: pair.value as Node | null, offset: (pair.key as Node).range?.[0] };
}

/** Both spellings of a field (`trustDomain`, `trust_domain`) are the same to a reader of the message. */
const sameField = (written: string, step: string | number): boolean =>
  written === String(step) || written.replaceAll("_", "").toLowerCase() === String(step).replaceAll("_", "").toLowerCase();
