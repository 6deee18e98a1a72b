/** A word of an action, such as `.Values.a`, `$x`, `"text"` or `|`. */
export interface Token {
  readonly type: "field" | "variable" | "name" | "text" | "number" | "mark";
  readonly text: string;
  /** Stands right behind what is before it: `.a.b` is one chain, `.a .b` two words. */
  readonly glued: boolean;
}

/** What cannot be a template, with what stands there. */
export class TemplateSyntaxError extends Error {
  override readonly name = "TemplateSyntaxError";
}

const PATTERNS: readonly (readonly [Token["type"], RegExp])[] = [
  ["field", /\.[A-Za-z_][A-Za-z0-9_]*/y],
  ["variable", /\$[A-Za-z0-9_]*/y],
  ["number", /[+-]?(?:0[xX][0-9a-fA-F]+|\d+(?:\.\d+)?)/y],
  ["name", /[A-Za-z_][A-Za-z0-9_]*/y],
  ["text", /"(?:[^"\\\n]|\\.)*"|`[^`]*`/y],
  ["mark", /:=|[|(),=.]/y],
];

/** Cuts the inside of an action into words. */
export function lexAction(source: string): readonly Token[] {
  const tokens: Token[] = [];
  let at = 0;
  while (at < source.length) {
    const space = /\s*/y;
    space.lastIndex = at;
    const skipped = space.exec(source)?.[0].length ?? 0;
    at += skipped;
    if (at >= source.length) break;
    const token = tokenAt(source, at);
    if (token === undefined) throw new TemplateSyntaxError(`${JSON.stringify(source.slice(at, at + 20))} is not understood`);
    tokens.push({ ...token, glued: skipped === 0 && tokens.length > 0 });
    at += token.text.length;
  }
  return tokens;
}

function tokenAt(source: string, at: number): Omit<Token, "glued"> | undefined {
  for (const [type, pattern] of PATTERNS) {
    pattern.lastIndex = at;
    const text = pattern.exec(source)?.[0];
    if (text !== undefined) return { type, text };
  }
  return undefined;
}

/** The value of a text in quotes or back quotes. */
export function unquote(text: string): string {
  if (text.startsWith("`")) return text.slice(1, -1);
  try {
    return String(JSON.parse(text.replaceAll("\\'", "'").replaceAll(/\\x([0-9a-fA-F]{2})/g, "\\u00$1")));
  } catch {
    throw new TemplateSyntaxError(`${text} is no text`);
  }
}
