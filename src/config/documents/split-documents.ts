/** One document of a text: the lines between two `---`, without the blank lines and comments above its content. */
export interface TextDocument {
  readonly text: string;
  /** 1-based line where `text` begins. */
  readonly line: number;
}

/**
 * Cuts a YAML stream into its documents without parsing it. Exact: `---` and `...` at the start of a line end a document wherever
 * they stand, also inside a quoted or block scalar (YAML 1.2, rule c-forbidden). So one edit in a large file costs one document,
 * and a document that cannot be read does not take its neighbours with it.
 */
export function splitDocuments(text: string): TextDocument[] {
  const documents: TextDocument[] = [];
  let start = text.charCodeAt(0) === BYTE_ORDER_MARK ? 1 : 0;
  let startLine = 1;
  let line = 1;
  let stage: "head" | "directives" | "content" = "head";
  const cut = (at: number, atLine: number): void => {
    const document = withoutHead(text, { from: start, to: at, line: startLine });
    if (document !== undefined) documents.push(document);
    start = at;
    startLine = atLine;
    stage = "head";
  };
  for (let at = start; at < text.length; line += 1) {
    const newline = text.indexOf("\n", at);
    const end = newline === -1 ? text.length : newline;
    const next = end + 1;
    const marker = markerAt(text, at, end);
    if (marker === DASH) {
      if (stage === "directives") stage = "content";
      else cut(at, line);
    } else if (marker === DOT) {
      cut(Math.min(next, text.length), line + 1);
    } else if (text.charCodeAt(at) === PERCENT && stage !== "content") {
      stage = "directives";
    }
    if (stage === "head" && !isIdle(text, at, end)) stage = "content";
    at = next;
  }
  cut(text.length, line);
  return documents;
}

const BYTE_ORDER_MARK = 0xfeff;
const DASH = 0x2d;
const DOT = 0x2e;
const PERCENT = 0x25;
const HASH = 0x23;

/** Three dashes or dots at the start of a line, alone or followed by white space: which of them, if any. */
function markerAt(text: string, at: number, end: number): typeof DASH | typeof DOT | undefined {
  const code = text.charCodeAt(at);
  if (code !== DASH && code !== DOT) return undefined;
  if (end < at + 3 || text.charCodeAt(at + 1) !== code || text.charCodeAt(at + 2) !== code) return undefined;
  return end === at + 3 || isSpace(text.charCodeAt(at + 3)) ? code : undefined;
}

const isSpace = (code: number): boolean => code === 0x20 || code === 0x09 || code === 0x0d;

/** Part of a text, and the line where it begins. */
interface Span {
  readonly from: number;
  readonly to: number;
  readonly line: number;
}

/** Drops what stands above the first line with content; undefined where nothing is left. */
function withoutHead(text: string, { from, to, line: first }: Span): TextDocument | undefined {
  let line = first;
  for (let at = from; at < to; line += 1) {
    const newline = text.indexOf("\n", at);
    const end = newline === -1 || newline > to ? to : newline;
    if (!isIdle(text, at, end)) return { text: text.slice(at, to), line };
    at = end + 1;
  }
  return undefined;
}

/** Blank, a comment, `...`, or `---` with at most a comment behind it. */
function isIdle(text: string, at: number, end: number): boolean {
  let i = markerAt(text, at, end) === undefined ? at : at + 3;
  while (i < end && isSpace(text.charCodeAt(i))) i += 1;
  return i >= end || text.charCodeAt(i) === HASH;
}
