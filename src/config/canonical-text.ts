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
  for (const key of Object.keys(record).sort()) {
    const member = record[key];
    if (member !== undefined) text += `${key.length}:${key}${canonicalText(member)}`;
  }
  return `${text}}`;
}
