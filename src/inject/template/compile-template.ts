import { evaluateTemplate } from "./evaluate-template.ts";
import { parseTemplate } from "./parse-template.ts";

/** A template that has been read: data in, text out. Throws a sentence with the line where it fails. */
export type CompiledTemplate = (data: unknown) => string;

/** Reads a template once; throws a sentence with the line where it is none. */
export function compileTemplate(text: string): CompiledTemplate {
  const tree = parseTemplate(text);
  return (data) => evaluateTemplate(tree, data);
}
