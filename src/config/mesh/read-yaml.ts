import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument as parseForLines } from "yaml";
import { parseDocument } from "../documents/parse-document.ts";
import { splitDocuments } from "../documents/split-documents.ts";
import type { FieldPath } from "../problem.ts";

/** The content of a YAML text, or what is wrong with it and where. */
export type YamlRead =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string; readonly line: number };

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

/** Finds the line (1-based) of the field at a path, or of its nearest ancestor that is written. */
export type LineFinder = (path: FieldPath) => number | undefined;

/** A second, slower parser finds lines, so it runs only when something was found wrong, and once. */
export function lineFinder(text: string): LineFinder {
  let parsed: ParsedLines | undefined;
  return (path) => {
    parsed ??= parseLines(text);
    return lineIn(parsed, path);
  };
}

interface ParsedLines {
  readonly document: Document.Parsed;
  readonly lines: LineCounter;
}

function parseLines(text: string): ParsedLines {
  const lines = new LineCounter();
  return { document: parseForLines(text, { lineCounter: lines, merge: true, uniqueKeys: false }), lines };
}

function lineIn({ document, lines }: ParsedLines, path: FieldPath): number | undefined {
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

/** Whether a content has something at `path` itself. */
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
