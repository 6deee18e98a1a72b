import { constructFromEvents, EVENT_ID, type Event, parseEvents, YAMLException } from "js-yaml";
import { messageOf } from "../../base/errors.ts";
import { DOCUMENT_LIMITS, type DocumentLimits } from "./document-limits.ts";
import { type ItemPlace, itemPlaces } from "./list-items.ts";
import { measureValue } from "./measure-value.ts";
import { KUBERNETES_YAML } from "./yaml-schema.ts";

/** One object of a document: the document itself, or an entry of its list. */
export interface DocumentPart extends ItemPlace {
  readonly content: unknown;
}

/** What a document says, or why it cannot be read. `lineOffset` counts lines below the start of the text. */
export type ParsedDocument = { readonly parts: readonly DocumentPart[] } | { readonly fault: string; readonly lineOffset: number };

/**
 * Reads one YAML or JSON document into JSON-shaped values; a `kind: List` becomes its entries, an empty document nothing.
 * Never throws, and never follows aliases beyond the limits: js-yaml shares what an alias names, so the size is counted before
 * anything walks it.
 */
export function parseDocument(text: string, limits: DocumentLimits = DOCUMENT_LIMITS): ParsedDocument {
  const json = jsonOf(text);
  if (json !== undefined) {
    const fault = measureValue(json, { ...limits, maxNodes: Number.POSITIVE_INFINITY });
    return fault === undefined ? { parts: partsOf(json, text, []) } : { fault, lineOffset: 0 };
  }
  try {
    return readRepaired(text, limits);
  } catch (error) {
    return faultOf(error, limits);
  }
}

/** More such lines in one document are not worth the parses. */
const MAX_REPAIRS = 50;
const REPAIR_INDENT = 16;

/**
 * Go's YAML reader does not care how far in the lines of a flow collection stand, js-yaml wants them further in than their key. Such a
 * line is moved to the right, where it means the same, and the document is read again. What is no YAML either way keeps its first fault.
 */
function readRepaired(text: string, limits: DocumentLimits): ParsedDocument {
  let current = text;
  let first: unknown;
  for (let repairs = 0; ; repairs++) {
    try {
      return readYaml(current, limits);
    } catch (error) {
      first ??= error;
      const repaired = repairs < MAX_REPAIRS ? indentFaultyLine(current, error) : undefined;
      if (repaired === undefined) throw first;
      current = repaired;
    }
  }
}

function indentFaultyLine(text: string, error: unknown): string | undefined {
  if (!(error instanceof YAMLException) || error.reason !== "deficient indentation" || error.mark === undefined) return undefined;
  const lines = text.split("\n");
  const line = lines[error.mark.line];
  if (line === undefined || line.trim() === "") return undefined;
  lines[error.mark.line] = `${" ".repeat(REPAIR_INDENT)}${line}`;
  return lines.join("\n");
}

function readYaml(text: string, limits: DocumentLimits): ParsedDocument {
  const events = parseEvents(text, { maxDepth: limits.maxDepth });
  const json = limits.repeatedKeys === "last";
  const values = constructFromEvents(events, { source: text, schema: KUBERNETES_YAML, maxAliases: limits.maxAliases, json });
  const aliased = events.some((event) => event.type === EVENT_ID.ALIAS);
  const parts: DocumentPart[] = [];
  for (const value of values) {
    const fault = aliased ? measureValue(value, limits) : undefined;
    if (fault !== undefined) return { fault, lineOffset: 0 };
    parts.push(...partsOf(value, text, events));
  }
  return { parts };
}

/** Well-formed JSON is YAML too, but JSON.parse reads it ten times as fast. */
function jsonOf(text: string): unknown {
  const first = text.trimStart().charAt(0);
  if (first !== "{" && first !== "[") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function partsOf(value: unknown, text: string, events: readonly Event[]): DocumentPart[] {
  if (value === null || value === undefined) return [];
  const items = listItems(value);
  if (items === undefined) return [{ content: value, lineOffset: 0, text }];
  const places = itemPlaces(text, events);
  return items.map((content, index) => ({ content, ...(places[index] ?? { lineOffset: 0 }) }));
}

/** Entries of a list object (`List`, or `VirtualServiceList` as the API server gives it, whose entries carry no kind of their own). */
function listItems(value: unknown): readonly unknown[] | undefined {
  if (!isRecord(value)) return undefined;
  const { apiVersion, items, kind: listKind } = value;
  if (typeof listKind !== "string" || !listKind.endsWith("List") || !Array.isArray(items)) return undefined;
  const kind = listKind.slice(0, -"List".length);
  if (kind === "") return items;
  return items.map((item: unknown) => (isRecord(item) && item.kind === undefined ? { apiVersion, kind, ...item } : item));
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

const LONGEST_REASON = 200;

/** The sentence for the user. Without js-yaml's excerpt: the text may be a secret, and the line says enough. */
function faultOf(error: unknown, limits: DocumentLimits): ParsedDocument {
  if (!(error instanceof YAMLException)) return { fault: `cannot be read: ${messageOf(error)}`, lineOffset: 0 };
  const lineOffset = error.mark?.line ?? 0;
  if (/aliases/i.test(error.reason)) return { fault: `uses more than ${limits.maxAliases} aliases`, lineOffset };
  if (/depth/i.test(error.reason)) return { fault: `nests more than ${limits.maxDepth} levels deep`, lineOffset };
  const column = error.mark === undefined ? "" : ` (column ${error.mark.column + 1})`;
  // What it quotes may be as long as the text, and have lines of its own.
  const quoted = error.reason.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, " ");
  const reason = quoted.length > LONGEST_REASON ? `${quoted.slice(0, LONGEST_REASON)}…` : quoted;
  return { fault: `not valid YAML: ${reason}${column}`, lineOffset };
}
