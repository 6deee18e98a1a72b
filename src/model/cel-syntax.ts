import { quote } from "../base/quote.ts";
import { type CelNode, callFault } from "./cel-functions.ts";
import { CEL_END, type CelToken, celTextValue, celTokens, fitsCel } from "./cel-tokens.ts";

const LONGEST = 4096;
/** As deep as Envoy reads: expressions inside one another, and operators, calls and members on top of one another. */
const MAX_NESTING = 33;
const MAX_HEIGHT = 32;

/** Words that are values or operators, and those that CEL keeps for itself, which may be fields still. */
const VALUES: ReadonlySet<string> = new Set(["true", "false", "null"]);
const RESERVED: ReadonlySet<string> = new Set(
  "as break const continue else for function if import in let loop package namespace return var void while".split(" "),
);

/**
 * What keeps a text from being a CEL expression that Envoy takes: its grammar, limits and functions. Attributes may have any name, and types
 * are found out about when it is evaluated. Messages cannot be made.
 */
export function celFault(expression: string): string | undefined {
  if (expression.length > LONGEST) return `the expression is longer than ${LONGEST} characters`;
  const tokens = celTokens(expression);
  if (typeof tokens === "string") return tokens;
  const parser = new Parser(tokens);
  return parser.isWhole() ? undefined : `${quote(expression)} is not a CEL expression that Envoy takes: ${parser.fault()}`;
}

const other = (height: number): CelNode => ({ height, kind: "other", text: "" });
const leaf = other(1);
const above = (...nodes: readonly CelNode[]): CelNode => other(1 + Math.max(0, ...nodes.map(({ height }) => height)));

/** Recursive descent; every method gives what it found, and nothing at the first token that does not fit. */
class Parser {
  readonly #tokens: readonly CelToken[];
  #at = 0;
  #nesting = 0;
  #fault: string | undefined;

  constructor(tokens: readonly CelToken[]) {
    this.#tokens = tokens;
  }

  isWhole(): boolean {
    const node = this.#expression();
    if (node !== undefined && node.height > MAX_HEIGHT) this.#fault ??= "it is too deep";
    return node !== undefined && this.#fault === undefined && this.#token().kind === "end";
  }

  fault(): string {
    return this.#fault ?? `unexpected ${this.#token().kind === "end" ? CEL_END : quote(this.#token().text)}`;
  }

  #token(): CelToken {
    return this.#tokens[this.#at] ?? { kind: "end", text: CEL_END };
  }

  #take(...signs: readonly string[]): boolean {
    const { kind, text } = this.#token();
    const fits = (kind === "sign" || (kind === "name" && text === "in")) && signs.includes(text);
    if (fits) this.#at++;
    return fits;
  }

  #takeKind(kind: CelToken["kind"]): string | undefined {
    const token = this.#token();
    if (token.kind !== kind) return undefined;
    this.#at++;
    return token.text;
  }

  #refuse(fault: string): undefined {
    this.#fault ??= fault;
    return undefined;
  }

  #expression(): CelNode | undefined {
    if (++this.#nesting > MAX_NESTING) return this.#refuse("it is too deep");
    const asked = this.#either();
    if (asked === undefined || !this.#take("?")) {
      this.#nesting--;
      return asked;
    }
    const yes = this.#either();
    const no = yes !== undefined && this.#take(":") ? this.#expression() : undefined;
    this.#nesting--;
    return yes && no && above(asked, yes, no);
  }

  #either(): CelNode | undefined {
    return this.#balanced("||", () => this.#balanced("&&", () => this.#relation()));
  }

  /** operand { sign operand }, which Envoy puts together two by two. */
  #balanced(sign: string, operand: () => CelNode | undefined): CelNode | undefined {
    const nodes: CelNode[] = [];
    do {
      const node = operand();
      if (node === undefined) return undefined;
      nodes.push(node);
    } while (this.#take(sign));
    const [only] = nodes;
    return nodes.length === 1 ? only : other(above(...nodes).height - 1 + Math.ceil(Math.log2(nodes.length)));
  }

  #relation(): CelNode | undefined {
    return this.#chain(["<", "<=", ">", ">=", "==", "!=", "in"], () =>
      this.#chain(["+", "-"], () => this.#chain(["*", "/", "%"], () => this.#unary())),
    );
  }

  /** operand { sign operand }, the first innermost. */
  #chain(signs: readonly string[], operand: () => CelNode | undefined): CelNode | undefined {
    let left = operand();
    while (left !== undefined && this.#take(...signs)) {
      const right = operand();
      left = right && above(left, right);
    }
    return left;
  }

  /** Signs of one sort; only a number may have its own behind others. */
  #unary(): CelNode | undefined {
    const start = this.#at;
    while (this.#take("!"));
    const isNot = this.#at > start;
    const behind = this.#tokens[this.#at + 1]?.kind;
    if (!isNot) while (this.#take("-"));
    else if (behind === "number") this.#take("-");
    const isSigned = this.#at > start;
    const node = this.#members(this.#primary(this.#tokens[this.#at - 1]?.text === "-" && isSigned));
    return isSigned && node !== undefined ? above(node) : node;
  }

  #members(start: CelNode | undefined): CelNode | undefined {
    let node = start;
    while (node !== undefined) {
      if (this.#take(".")) node = this.#member(node);
      else if (this.#take("[")) {
        const index = this.#expression();
        node = index !== undefined && this.#take("]") ? above(node, index) : undefined;
      } else return node;
    }
    return undefined;
  }

  #member(of: CelNode): CelNode | undefined {
    const { text } = this.#token();
    if (this.#takeKind("field") !== undefined) return { ...above(of), kind: "field" };
    if (text === "in" || VALUES.has(text) || this.#takeKind("name") === undefined) return undefined;
    return this.#take("(") ? this.#call(text, of) : { ...above(of), kind: "field" };
  }

  #primary(negative: boolean): CelNode | undefined {
    const number = this.#takeKind("number");
    if (number !== undefined) return fitsCel(number, negative) ? leaf : this.#refuse(`${number} is too large`);
    const text = this.#takeKind("text");
    if (text !== undefined) {
      const value = celTextValue(text);
      return value === undefined ? leaf : { height: 1, kind: "text", text: value };
    }
    if (this.#take("(")) {
      const inner = this.#expression();
      return this.#take(")") ? inner : undefined;
    }
    if (this.#take("[")) return this.#list("]", () => this.#expression());
    if (this.#take("{")) return this.#list("}", () => this.#entry());
    return this.#name();
  }

  #name(): CelNode | undefined {
    this.#take(".");
    const name = this.#takeKind("name");
    if (name === undefined) return undefined;
    if (VALUES.has(name)) return leaf;
    if (RESERVED.has(name)) return this.#refuse(`${quote(name)} is a word of the language`);
    return this.#take("(") ? this.#call(name, undefined) : { height: 1, kind: "name", text: name };
  }

  /** [argument {"," argument}] ")" */
  #call(name: string, receiver: CelNode | undefined): CelNode | undefined {
    const args: CelNode[] = [];
    if (!this.#take(")"))
      do {
        const argument = this.#expression();
        if (argument === undefined) return undefined;
        args.push(argument);
      } while (this.#take(","));
    if (args.length > 0 && !this.#take(")")) return undefined;
    const fault = callFault({ name, receiver, args });
    return fault === undefined ? above(...(receiver === undefined ? [] : [receiver]), ...args) : this.#refuse(fault);
  }

  #entry(): CelNode | undefined {
    const key = this.#expression();
    const value = key !== undefined && this.#take(":") ? this.#expression() : undefined;
    return key && value && other(Math.max(key.height, value.height));
  }

  /** [item {"," item} [","]] end */
  #list(end: string, item: () => CelNode | undefined): CelNode | undefined {
    const items: CelNode[] = [];
    while (!this.#take(end)) {
      const node = item();
      if (node === undefined) return undefined;
      items.push(node);
      if (!this.#take(",") && this.#token().text !== end) return undefined;
    }
    return above(...items);
  }
}
