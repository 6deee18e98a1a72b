import { TemplateSyntaxError } from "./lex-action.ts";

/** A piece of a template: text as it is, or the inside of `{{ … }}`. */
export type Piece =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "action"; readonly source: string; readonly line: number };

/** Cuts a template into text and actions. `{{-` and `-}}` take the white space beside them away; comments vanish. */
export function splitTemplate(template: string): readonly Piece[] {
  const pieces: Piece[] = [];
  let at = 0;
  let trimNext = false;
  while (at < template.length) {
    const open = template.indexOf("{{", at);
    const end = open === -1 ? template.length : open;
    const trimsBefore = open !== -1 && /^-\s/.test(template.slice(open + 2, open + 4));
    let text = template.slice(at, end);
    if (trimNext) text = text.trimStart();
    if (trimsBefore) text = text.trimEnd();
    if (text !== "") pieces.push({ type: "text", text });
    if (open === -1) break;
    const close = closeOf(template, open + 2);
    if (close === -1) throw new TemplateSyntaxError(`the action that begins in line ${lineOf(template, open)} does not end`);
    const inside = template.slice(open + (trimsBefore ? 3 : 2), close);
    trimNext = /\s-$/.test(inside);
    const source = (trimNext ? inside.slice(0, -1) : inside).trim();
    if (!source.startsWith("/*")) pieces.push({ type: "action", source, line: lineOf(template, open) });
    at = close + 2;
  }
  return pieces;
}

/** Where the action ends: not inside a text or a comment. */
function closeOf(template: string, from: number): number {
  const comment = /^-?\s*\/\*/.exec(template.slice(from, from + 16));
  if (comment !== null) {
    const end = template.indexOf("*/", from);
    return end === -1 ? -1 : template.indexOf("}}", end);
  }
  const parts = /"(?:[^"\\\n]|\\.)*"|`[^`]*`|\}\}/g;
  parts.lastIndex = from;
  for (let match = parts.exec(template); match !== null; match = parts.exec(template)) if (match[0] === "}}") return match.index;
  return -1;
}

const lineOf = (text: string, at: number): number => text.slice(0, at).split("\n").length;
