import { lexAction, TemplateSyntaxError, type Token, unquote } from "./lex-action.ts";
import type { Command, Operand, Pipe } from "./template-nodes.ts";

const DEEPEST = 50;
const CONSTANTS: Readonly<Record<string, unknown>> = { true: true, false: false, nil: null };

/** Reads a pipeline such as `$x := .a | default "b"`. */
export function parsePipe(source: string): Pipe {
  const reader = new PipeReader(lexAction(source));
  const pipe = reader.pipe(0);
  reader.end();
  return pipe;
}

class PipeReader {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  end(): void {
    const rest = this.#tokens[this.#at];
    if (rest !== undefined) throw new TemplateSyntaxError(`${JSON.stringify(rest.text)} is not expected`);
  }

  pipe(depth: number): Pipe {
    if (depth > DEEPEST) throw new TemplateSyntaxError(`parentheses nest more than ${DEEPEST} levels deep`);
    const { variables, assigns } = this.#declaration();
    const commands: Command[] = [this.#command(depth)];
    while (this.#take("|")) commands.push(this.#command(depth));
    return { variables, assigns, commands };
  }

  /** `$x :=`, `$x =`, `$i, $x :=`. */
  #declaration(): Pick<Pipe, "variables" | "assigns"> {
    const names: string[] = [];
    let at = this.#at;
    for (;;) {
      const name = this.#tokens[at];
      const mark = this.#tokens[at + 1];
      if (name?.type !== "variable" || mark?.type !== "mark") break;
      names.push(name.text.slice(1));
      if (mark.text === ":=" || mark.text === "=") {
        this.#at = at + 2;
        return { variables: names, assigns: mark.text === "=" };
      }
      if (mark.text !== ",") break;
      at += 2;
    }
    return { variables: [], assigns: false };
  }

  #command(depth: number): Command {
    const operands: Operand[] = [];
    for (let operand = this.#operand(depth); operand !== undefined; operand = this.#operand(depth)) operands.push(operand);
    if (operands.length === 0) throw new TemplateSyntaxError("a value is missing");
    return operands;
  }

  #operand(depth: number): Operand | undefined {
    const token = this.#tokens[this.#at];
    if (token === undefined || (token.type === "mark" && token.text !== "(" && token.text !== ".")) return undefined;
    this.#at += 1;
    switch (token.type) {
      case "field":
        return { type: "dot", fields: [token.text.slice(1), ...this.#fields()] };
      case "variable":
        return { type: "variable", variable: token.text.slice(1), fields: this.#fields() };
      case "text":
        return { type: "literal", value: unquote(token.text) };
      case "number":
        return { type: "literal", value: Number(token.text) };
      case "name":
        return token.text in CONSTANTS ? { type: "literal", value: CONSTANTS[token.text] } : { type: "function", called: token.text };
      case "mark":
        return token.text === "." ? { type: "dot", fields: [] } : this.#parentheses(depth);
    }
  }

  #parentheses(depth: number): Operand {
    const pipe = this.pipe(depth + 1);
    if (!this.#take(")")) throw new TemplateSyntaxError("a closing parenthesis is missing");
    return { type: "pipe", pipe, fields: this.#fields() };
  }

  /** Fields glued to what is before them. */
  #fields(): readonly string[] {
    const fields: string[] = [];
    for (let next = this.#tokens[this.#at]; next?.type === "field" && next.glued; next = this.#tokens[this.#at]) {
      fields.push(next.text.slice(1));
      this.#at += 1;
    }
    return fields;
  }

  #take(mark: string): boolean {
    const token = this.#tokens[this.#at];
    if (token?.type !== "mark" || token.text !== mark) return false;
    this.#at += 1;
    return true;
  }
}
