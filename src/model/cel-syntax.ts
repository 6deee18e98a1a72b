import { quote } from "../base/quote.ts";

const LONGEST = 4096;
const MAX_DEPTH = 64;
const SPACE = /(?:\s+|\/\/[^\n]*)*/y;
const NUMBER = /0[xX][0-9a-fA-F]+[uU]?|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?[uU]?|\.\d+(?:[eE][-+]?\d+)?/.source;
const RAW_TEXT = /[bB]?[rR][bB]?(?:"""[\s\S]*?"""|'''[\s\S]*?'''|"[^"\n]*"|'[^'\n]*')/.source;
const TEXT = /[bB]?(?:"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')/.source;
const SIGN = /&&|\|\||[<>=!]=|[-+*/%!<>?:,.()[\]{}]/.source;
const TOKEN = new RegExp(`(?<number>${NUMBER})|(?<text>${RAW_TEXT}|${TEXT})|(?<name>[_a-zA-Z][_a-zA-Z0-9]*)|(?<sign>${SIGN})`, "y");
const END = "end of expression";

export interface CelToken {
  readonly kind: "number" | "text" | "name" | "sign" | "end";
  readonly text: string;
}

/**
 * What keeps a text from being a CEL expression. Syntax only: Envoy knows the attributes, and decides types when it loads the configuration.
 * The grammar is that of the CEL specification.
 */
export function celFault(expression: string): string | undefined {
  if (expression.length > LONGEST) return `the expression is longer than ${LONGEST} characters`;
  const tokens = celTokens(expression);
  if (typeof tokens === "string") return tokens;
  const parser = new Parser(tokens);
  return parser.whole() ? undefined : `${quote(expression)} is not a CEL expression: unexpected ${parser.found()}`;
}

/** The words of an expression, the end as the last; or what keeps it from having any. */
export function celTokens(expression: string): readonly CelToken[] | string {
  const tokens: CelToken[] = [];
  for (let at = skipSpace(expression, 0); at < expression.length; at = skipSpace(expression, TOKEN.lastIndex)) {
    TOKEN.lastIndex = at;
    const groups = TOKEN.exec(expression)?.groups;
    const kind = (["number", "text", "name", "sign"] as const).find((name) => groups?.[name] !== undefined);
    if (kind === undefined) return `${quote(expression)} is not a CEL expression: unexpected ${quote(expression.charAt(at))}`;
    tokens.push({ kind, text: groups?.[kind] ?? "" });
  }
  return [...tokens, { kind: "end", text: END }];
}

function skipSpace(expression: string, at: number): number {
  SPACE.lastIndex = at;
  SPACE.exec(expression);
  return SPACE.lastIndex;
}

/** Recursive descent; every method returns whether what it names was found, and stops at the first token that does not fit. */
class Parser {
  readonly #tokens: readonly CelToken[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly CelToken[]) {
    this.#tokens = tokens;
  }

  whole(): boolean {
    return this.#expression() && this.#token().kind === "end";
  }

  found(): string {
    return this.#token().kind === "end" ? END : quote(this.#token().text);
  }

  #token(): CelToken {
    return this.#tokens[this.#at] ?? { kind: "end", text: END };
  }

  #take(...signs: readonly string[]): boolean {
    const token = this.#token();
    const fits = (token.kind === "sign" || token.text === "in") && token.kind !== "text" && signs.includes(token.text);
    if (fits) this.#at++;
    return fits;
  }

  #takeKind(kind: CelToken["kind"]): boolean {
    const fits = this.#token().kind === kind;
    if (fits) this.#at++;
    return fits;
  }

  #expression(): boolean {
    if (++this.#depth > MAX_DEPTH) return false;
    const fits =
      this.#chain(["||"], () => this.#chain(["&&"], () => this.#relation())) &&
      (!this.#take("?") || (this.#expression() && this.#take(":") && this.#expression()));
    this.#depth--;
    return fits;
  }

  #relation(): boolean {
    return this.#chain(["<", "<=", ">", ">=", "==", "!=", "in"], () =>
      this.#chain(["+", "-"], () => this.#chain(["*", "/", "%"], () => this.#unary())),
    );
  }

  /** operand { sign operand } */
  #chain(signs: readonly string[], operand: () => boolean): boolean {
    do if (!operand()) return false;
    while (this.#take(...signs));
    return true;
  }

  #unary(): boolean {
    while (this.#take("!", "-"));
    return this.#primary() && this.#members();
  }

  #members(): boolean {
    for (;;) {
      if (this.#take(".")) {
        if (!this.#takeKind("name") || !this.#call() || !this.#fields()) return false;
      } else if (this.#take("[")) {
        if (!this.#expression() || !this.#take("]")) return false;
      } else return true;
    }
  }

  #primary(): boolean {
    if (this.#takeKind("number") || this.#takeKind("text")) return true;
    if (this.#take("(")) return this.#expression() && this.#take(")");
    if (this.#take("[")) return this.#list("]", () => this.#expression());
    if (this.#take("{")) return this.#list("}", () => this.#expression() && this.#take(":") && this.#expression());
    this.#take(".");
    if (this.#token().text === "in" || !this.#takeKind("name")) return false;
    return this.#call() && this.#fields();
  }

  /** Arguments, where there are any. */
  #call(): boolean {
    return !this.#take("(") || this.#list(")", () => this.#expression());
  }

  /** The fields of a message, behind its name. */
  #fields(): boolean {
    return !this.#take("{") || this.#list("}", () => this.#takeKind("name") && this.#take(":") && this.#expression());
  }

  /** [item {"," item} [","]] end */
  #list(end: string, item: () => boolean): boolean {
    while (!this.#take(end)) {
      if (!item()) return false;
      if (!this.#take(",")) return this.#take(end);
    }
    return true;
  }
}
