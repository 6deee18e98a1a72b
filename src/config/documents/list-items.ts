import { COLLECTION_STYLE, EVENT_ID, type Event, getScalarValue } from "js-yaml";

/** Where one item of a `kind: List` stands in the text of the list. */
export interface ItemPlace {
  /** Lines above it. */
  readonly lineOffset: number;
  /** Its own lines, indented as they stand; absent where items share lines. */
  readonly text?: string;
}

/** Places of the entries of the top-level `items`, so that a fault in one entry is reported at its own line. */
export function itemPlaces(source: string, events: readonly Event[]): ItemPlace[] {
  const { starts, end } = itemStarts(source, events);
  let lineOffset = 0;
  let counted = 0;
  return starts.map((start, index) => {
    const lineStart = source.lastIndexOf("\n", start - 1) + 1;
    for (let at = source.indexOf("\n", counted); at !== -1 && at < start; at = source.indexOf("\n", at + 1)) {
      lineOffset += 1;
      counted = at + 1;
    }
    const nextStart = starts[index + 1] ?? end;
    const nextLine = nextStart >= source.length ? source.length : source.lastIndexOf("\n", nextStart - 1) + 1;
    if (nextLine <= start) return { lineOffset };
    return { lineOffset, text: " ".repeat(start - lineStart) + source.slice(start, nextLine) };
  });
}

/** Offsets at which block-style entries of `items` begin, and where whatever follows the list begins. */
function itemStarts(source: string, events: readonly Event[]): { starts: number[]; end: number } {
  const starts: number[] = [];
  let depth = 0;
  let inItems = false;
  let keyNext = true;
  let key = "";
  for (const event of events) {
    if (event.type === EVENT_ID.DOCUMENT) continue;
    if (event.type === EVENT_ID.POP) {
      depth -= 1;
      if (depth === 1) keyNext = true;
      continue;
    }
    if (depth === 1 && inItems) return { starts, end: offsetOf(event) };
    if (depth === 2 && inItems) starts.push(offsetOf(event));
    if (depth === 1 && keyNext) {
      key = event.type === EVENT_ID.SCALAR ? getScalarValue(source, event) : "";
      keyNext = false;
    } else if (depth === 1) {
      keyNext = event.type === EVENT_ID.SCALAR || event.type === EVENT_ID.ALIAS;
      inItems = key === "items" && event.type === EVENT_ID.SEQUENCE && event.style === COLLECTION_STYLE.BLOCK;
    }
    if (event.type === EVENT_ID.SEQUENCE || event.type === EVENT_ID.MAPPING) depth += 1;
  }
  return { starts, end: source.length };
}

function offsetOf(event: Event): number {
  switch (event.type) {
    case EVENT_ID.SEQUENCE:
    case EVENT_ID.MAPPING:
      return event.start;
    case EVENT_ID.SCALAR:
      return event.valueStart;
    case EVENT_ID.ALIAS:
      return event.anchorStart;
    default:
      return 0;
  }
}
