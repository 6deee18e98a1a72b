/** Longer ones are rarely the same. */
const LONGEST = 64;
/** From this length on V8 makes a part of a text a view of it, which keeps all of it. */
const SHORTEST_VIEW = 13;
const KEPT = 4_096;

const texts = new Map<string, string>();

/**
 * One text for equal short ones, as far as the last few thousand go: the same labels, localities and accounts stand in thousands of endpoints. And
 * no text that is given keeps the document that it was cut from.
 */
export function sharedText(text: string): string {
  if (text.length > LONGEST) return ownText(text);
  const known = texts.get(text);
  if (known !== undefined) return known;
  if (texts.size === KEPT) texts.clear();
  const own = ownText(text);
  texts.set(own, own);
  return own;
}

/** The same text, which keeps nothing of the one that it may have been cut from. */
export const ownText = (text: string): string =>
  // Half a surrogate pair, which JSON may escape, has no bytes in UTF-8.
  text.length < SHORTEST_VIEW || !text.isWellFormed() ? text : Buffer.from(text).toString();
