import { quote } from "../base/quote.ts";

export interface CelToken {
  /** A `field` is a name in backquotes. */
  readonly kind: "number" | "text" | "name" | "field" | "sign" | "end";
  readonly text: string;
}

export const CEL_END = "end of expression";

const SPACE = /(?:[ \t\r\n\f]+|\/\/[^\n]*)*/y;
const NUMBER = /0[xX][0-9a-fA-F]+[uU]?|\d+[uU]|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?/.source;
const RAW_TEXT = /[bB]?[rR](?:"""[\s\S]*?(?<!\\)"""|'''[\s\S]*?(?<!\\)'''|"[^"\n]*(?<!\\)"|'[^'\n]*(?<!\\)')/.source;
/** What may follow a backslash: a sign, a byte as two digits or three; and, in texts that are not bytes, a letter that is not half of one. */
const BYTE = /\\(?:[abfnrtv\\?"'`]|[xX][0-9a-fA-F]{2}|[0-3][0-7]{2})/.source;
const LETTER = /\\(?:u|U0000)(?![dD][89a-fA-F])[0-9a-fA-F]{4}|\\U00(?:10|0[1-9a-fA-F])[0-9a-fA-F]{4}/.source;
const quoted = (escaped: string): string =>
  [
    `"""(?:[^\\\\]|${escaped})*?"""`,
    `'''(?:[^\\\\]|${escaped})*?'''`,
    `"(?:[^"\\\\\\n]|${escaped})*"`,
    `'(?:[^'\\\\\\n]|${escaped})*'`,
  ].join("|");
const TEXT = `${quoted(`${BYTE}|${LETTER}`)}|[bB](?:${quoted(BYTE)})`;
const NAME = /[_a-zA-Z][_a-zA-Z0-9]*/.source;
const FIELD = /`[-_./ a-zA-Z0-9]+`/.source;
const SIGN = /&&|\|\||[<>=!]=|[-+*/%!<>?:,.()[\]{}]/.source;
const TOKEN = new RegExp(`(?<number>${NUMBER})|(?<text>${RAW_TEXT}|${TEXT})|(?<name>${NAME})|(?<field>${FIELD})|(?<sign>${SIGN})`, "y");
const KINDS = ["number", "text", "name", "field", "sign"] as const;

/** The words of a CEL expression, the end as the last; or what keeps it from having any. */
export function celTokens(expression: string): readonly CelToken[] | string {
  const tokens: CelToken[] = [];
  for (let at = skipSpace(expression, 0); at < expression.length; at = skipSpace(expression, TOKEN.lastIndex)) {
    TOKEN.lastIndex = at;
    const groups = TOKEN.exec(expression)?.groups;
    const kind = KINDS.find((name) => groups?.[name] !== undefined);
    if (kind === undefined) return `${quote(expression)} is not a CEL expression: unexpected ${quote(expression.charAt(at))}`;
    tokens.push({ kind, text: groups?.[kind] ?? "" });
  }
  return [...tokens, { kind: "end", text: CEL_END }];
}

function skipSpace(expression: string, at: number): number {
  SPACE.lastIndex = at;
  SPACE.exec(expression);
  return SPACE.lastIndex;
}

const ESCAPES = new RegExp(`${BYTE}|${LETTER}`, "g");

/** What a text says, undefined where it is bytes. Signs that nobody sees are a space: who asks reads it as a pattern. */
export function celTextValue(text: string): string | undefined {
  if (/^[bB]/.test(text)) return undefined;
  const inner = text.replace(/^[rR]?("""|'''|"|')([\s\S]*)\1$/, "$2");
  if (/^[rR]/.test(text)) return inner;
  return inner.replace(ESCAPES, (escaped) => {
    const sign = escaped.charAt(1);
    if (/[xXuU]/.test(sign)) return String.fromCodePoint(Number.parseInt(escaped.slice(2), 16));
    if (/\d/.test(sign)) return String.fromCodePoint(Number.parseInt(escaped.slice(1), 8));
    return /[a-z]/.test(sign) ? " " : sign;
  });
}

const LARGEST = 2n ** 63n - 1n;

/** Whether a number fits into one of Envoy's, which has 64 bits and, unless it ends with `u`, a sign. */
export function fitsCel(text: string, negative: boolean): boolean {
  if (!/^(?:0[xX][0-9a-fA-F]+|\d+)[uU]?$/.test(text)) return true;
  const unsigned = /[uU]$/.test(text);
  const value = BigInt(unsigned ? text.slice(0, -1) : text);
  return value <= (unsigned ? 2n * LARGEST + 1n : negative ? LARGEST + 1n : LARGEST);
}
