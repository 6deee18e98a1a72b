/**
 * Text that is equal for equal JSON content, whatever the order of keys, and differs for different content. For hashing: texts carry their
 * length instead of quotes, which is several times faster than JSON.stringify. Absent and undefined are the same; the input must be free of cycles.
 */
export function canonicalText(value: unknown): string {
  switch (typeof value) {
    case "string":
      return `"${value.length}:${value}`;
    case "object":
      return value === null ? "z" : Array.isArray(value) ? listText(value) : objectText(value as Readonly<Record<string, unknown>>);
    case "undefined":
      return "u";
    default:
      return `${String(value)};`;
  }
}

function listText(list: readonly unknown[]): string {
  let text = "[";
  for (let index = 0; index < list.length; index++) text += canonicalText(list[index]);
  return `${text}]`;
}

function objectText(record: Readonly<Record<string, unknown>>): string {
  let text = "{";
  for (const key of sorted(Object.keys(record))) {
    const member = record[key];
    if (member !== undefined) text += `${key.length}:${key}${canonicalText(member)}`;
  }
  return `${text}}`;
}

/** In code-unit order, in place. Objects have few keys, mostly in order already; `sort` would copy them twice. */
function sorted(keys: string[]): readonly string[] {
  if (keys.length > MOST_INSERTED) return keys.sort();
  for (let index = 1; index < keys.length; index++) {
    const key = keys[index] ?? "";
    let at = index;
    for (let before = keys[at - 1]; before !== undefined && before > key; before = keys[at - 1]) {
      keys[at] = before;
      at -= 1;
    }
    keys[at] = key;
  }
  return keys;
}

/** More keys than this are sorted sooner than inserted. */
const MOST_INSERTED = 16;
