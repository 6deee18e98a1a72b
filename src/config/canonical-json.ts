/** JSON text that is equal for equal content: keys sorted, absent and undefined the same. For hashing; the input must be free of cycles. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) {
    let text = "[";
    for (let index = 0; index < value.length; index++) text += index === 0 ? canonicalJson(value[index]) : `,${canonicalJson(value[index])}`;
    return `${text}]`;
  }
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  let text = "{";
  for (const key of Object.keys(value).sort()) {
    const member: unknown = (value as Readonly<Record<string, unknown>>)[key];
    if (member !== undefined) text += `${text === "{" ? "" : ","}${JSON.stringify(key)}:${canonicalJson(member)}`;
  }
  return `${text}}`;
}
