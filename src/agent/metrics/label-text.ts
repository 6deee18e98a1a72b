const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)",?/y;

/** Labels out of the text between braces. */
export function readLabels(text: string): Map<string, string> {
  const labels = new Map<string, string>();
  LABEL.lastIndex = 0;
  for (let found = LABEL.exec(text); found !== null; found = LABEL.exec(text)) {
    const [, name = "", value = ""] = found;
    labels.set(name, value.includes("\\") ? value.replaceAll(/\\(.)/g, (_, one: string) => (one === "n" ? "\n" : one)) : value);
  }
  return labels;
}

/** Labels as the text between braces. */
export const labelText = (labels: Iterable<readonly [name: string, value: string]>): string =>
  [...labels].map(([name, value]) => `${name}="${escaped(value)}"`).join(",");

const escaped = (value: string): string => value.replaceAll(/["\\\n]/g, (one) => (one === "\n" ? "\\n" : `\\${one}`));
