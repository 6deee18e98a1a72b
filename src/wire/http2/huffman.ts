/** Length in bits of the code of each byte, and of the mark for the end (RFC 7541, appendix B). The codes follow from it: shorter ones first, then by value. */
const CODE_BITS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10,
  12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7,
  7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22,
  23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22,
  23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20,
  24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];
const END = 256;

const entryOf = (symbol: number, bits: number): number => (bits << 16) | symbol;
const symbolOf = (entry: number): number => entry & 0xffff;
const bitsOf = (entry: number): number => entry >> 16;

/** Tables of 256 entries each, by the next eight bits: above 0 a byte and the bits its code takes of them, below 0 the table for what follows. */
const tables = makeTables();

/** Gives undefined where the bytes are no text: a code that is cut off, padding that is none, or the mark for the end. */
export function decodeHuffman(bytes: Uint8Array): string | undefined {
  const out = Buffer.allocUnsafe(Math.ceil((bytes.length * 8) / 5));
  let [written, table, bits, held] = [0, 0, 0, 0];
  for (let at = 0; at < bytes.length; at++) {
    bits = ((bits << 8) | (bytes[at] ?? 0)) & 0xffff;
    held += 8;
    while (held >= 8) {
      const entry = tables[table + ((bits >> (held - 8)) & 0xff)] ?? 0;
      if (entry < 0) {
        table = -entry;
        held -= 8;
        continue;
      }
      if (symbolOf(entry) === END) return undefined;
      out[written++] = symbolOf(entry);
      held -= bitsOf(entry);
      table = 0;
    }
  }
  while (held > 0) {
    const entry = tables[table + ((bits << (8 - held)) & 0xff)] ?? 0;
    if (entry < 0 || bitsOf(entry) > held) break;
    if (symbolOf(entry) === END) return undefined;
    out[written++] = symbolOf(entry);
    held -= bitsOf(entry);
    table = 0;
  }
  const padding = (1 << held) - 1;
  return table === 0 && (bits & padding) === padding ? out.toString("latin1", 0, written) : undefined;
}

function makeTables(): Int32Array {
  const made = new Int32Array(256 * 64);
  let used = 256;
  let [code, previous] = [-1, 0];
  for (const symbol of [...CODE_BITS.keys()].sort((a, b) => (CODE_BITS[a] ?? 0) - (CODE_BITS[b] ?? 0) || a - b)) {
    const length = CODE_BITS[symbol] ?? 0;
    code = (code + 1) << (length - (previous || length));
    previous = length;
    let [table, left] = [0, length];
    for (; left > 8; left -= 8) {
      const at = table + ((code >>> (left - 8)) & 0xff);
      if (made[at] === 0) {
        made[at] = -used;
        used += 256;
      }
      table = -(made[at] ?? 0);
    }
    const first = (code << (8 - left)) & 0xff;
    made.fill(entryOf(symbol, left), table + first, table + first + (1 << (8 - left)));
  }
  return made.slice(0, used);
}
