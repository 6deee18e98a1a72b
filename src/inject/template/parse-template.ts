import { messageOf } from "../../base/errors.ts";
import { TemplateSyntaxError } from "./lex-action.ts";
import { parsePipe } from "./parse-pipe.ts";
import { type Piece, splitTemplate } from "./split-template.ts";
import type { Branch, Node, TemplateTree } from "./template-nodes.ts";

const LONGEST = 512 * 1024;
const DEEPEST = 50;

/** Reads a template in the language of Go's text/template. Throws `TemplateSyntaxError` with the line. */
export function parseTemplate(text: string): TemplateTree {
  if (text.length > LONGEST) throw new TemplateSyntaxError(`is longer than ${LONGEST} characters`);
  const reader = new TemplateReader(splitTemplate(text));
  const main = reader.nodes(0);
  reader.expectEnd();
  return { main, defined: reader.defined };
}

type Action = Extract<Piece, { type: "action" }>;

class TemplateReader {
  readonly #pieces: readonly Piece[];
  readonly defined = new Map<string, readonly Node[]>();
  #at = 0;

  constructor(pieces: readonly Piece[]) {
    this.#pieces = pieces;
  }

  expectEnd(): void {
    const piece = this.#pieces[this.#at];
    if (piece?.type === "action") throw new TemplateSyntaxError(`line ${piece.line}: {{${piece.source}}} belongs to nothing`);
  }

  /** Everything up to an `end` or `else` of the construct around it, which is left for that. */
  nodes(depth: number): readonly Node[] {
    const nodes: Node[] = [];
    for (let piece = this.#pieces[this.#at]; piece !== undefined; piece = this.#pieces[this.#at]) {
      if (piece.type === "text") nodes.push({ type: "text", text: piece.text });
      else if (/^(?:end|else)\b/.test(piece.source)) return nodes;
      this.#at += 1;
      if (piece.type === "action") this.#within(piece, () => nodes.push(...this.#action(piece, depth)));
    }
    return nodes;
  }

  #action(piece: Action, depth: number): readonly Node[] {
    const { source, line } = piece;
    const [word = ""] = /^[a-z]+(?=\s|$)/.exec(source) ?? [];
    const rest = source.slice(word.length).trim();
    switch (word) {
      case "if":
      case "with":
      case "range":
        return [this.#branch(word, rest, { line, depth: depth + 1 })];
      case "define":
        this.#define(rest, depth + 1);
        return [];
      case "block": {
        const { name, pipe } = named(rest);
        this.#define(rest, depth + 1);
        return [{ type: "template", template: name, pipe, line }];
      }
      case "template": {
        const { name, pipe } = named(rest);
        return [{ type: "template", template: name, pipe, line }];
      }
      case "break":
      case "continue":
        return [{ type: word }];
      default:
        return source === "" ? [] : [{ type: "print", pipe: parsePipe(source), line }];
    }
  }

  #branch(type: Branch["type"], source: string, { line, depth }: { readonly line: number; readonly depth: number }): Branch {
    if (depth > DEEPEST) throw new TemplateSyntaxError(`actions nest more than ${DEEPEST} levels deep`);
    const pipe = parsePipe(source);
    const then = this.nodes(depth);
    const next = this.#next(type);
    if (next.source === "end") return { type, pipe, then, otherwise: [], line };
    const again = /^else\s+(if|with)\s+(.*)$/s.exec(next.source);
    if (again !== null) {
      const nested = this.#branch(again[1] as "if" | "with", again[2] ?? "", { line: next.line, depth: depth + 1 });
      return { type, pipe, then, otherwise: [nested], line };
    }
    const otherwise = this.nodes(depth);
    this.#next(type);
    return { type, pipe, then, otherwise, line };
  }

  #define(rest: string, depth: number): void {
    if (depth > DEEPEST) throw new TemplateSyntaxError(`actions nest more than ${DEEPEST} levels deep`);
    const { name } = named(rest);
    this.defined.set(name, this.nodes(depth));
    this.#next("define");
  }

  /** The `end` or `else` that follows. */
  #next(of: string): Action {
    const piece = this.#pieces[this.#at];
    if (piece?.type !== "action") throw new TemplateSyntaxError(`{{${of}}} has no {{end}}`);
    this.#at += 1;
    return piece;
  }

  #within(piece: Action, work: () => void): void {
    try {
      work();
    } catch (error) {
      const message = messageOf(error);
      throw new TemplateSyntaxError(message.startsWith("line ") ? message : `line ${piece.line}: ${message}`);
    }
  }
}

/** `"name" pipeline`. */
function named(source: string) {
  const match = /^("(?:[^"\\]|\\.)*"|`[^`]*`)\s*(.*)$/s.exec(source);
  if (match === null) throw new TemplateSyntaxError("the name of a template is missing");
  const rest = match[2] ?? "";
  return { name: (match[1] ?? "").slice(1, -1), pipe: rest === "" ? undefined : parsePipe(rest) };
}
