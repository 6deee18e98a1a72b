/** Longer ones are hardly ever said twice. */
const MOST_BYTES = 40;
const SLOTS = 4096;

/**
 * Texts of a list, each made once however often it is said: names of labels, of namespaces, of ports. What is said less often gives way to what was said last.
 * They are found by their bytes: one that is known is not made to be compared, as `base/shared-text` would have it.
 */
export class ListTexts {
  readonly #known: string[] = new Array<string>(SLOTS).fill("");
  #time: { readonly seconds: number; readonly text: string } | undefined;

  read(bytes: Buffer, from: number, to: number): string {
    if (to - from > MOST_BYTES) return bytes.toString("utf8", from, to);
    let hash = 0;
    let all = 0;
    for (let at = from; at < to; at++) {
      const byte = bytes[at] ?? 0;
      hash = (Math.imul(hash, 31) + byte) | 0;
      all |= byte;
    }
    if (all >= 0x80) return bytes.toString("utf8", from, to);
    const slot = (hash ^ (hash >>> 15)) & (SLOTS - 1);
    const known = this.#known[slot] ?? "";
    if (known.length === to - from && isText(known, bytes, from)) return known;
    const text = bytes.toString("latin1", from, to);
    this.#known[slot] = text;
    return text;
  }

  /** As JSON writes a time, in whole seconds. Objects that follow each other were often made in the same one. */
  time(seconds: number): string {
    if (this.#time?.seconds !== seconds) this.#time = { seconds, text: `${new Date(seconds * 1000).toISOString().slice(0, 19)}Z` };
    return this.#time.text;
  }
}

/** Whether these bytes are the text, character by character. */
function isText(text: string, bytes: Buffer, from: number): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) !== bytes[from + at]) return false;
  return true;
}
