import { quote } from "../../base/quote.ts";
import { celFault } from "../../model/cel-syntax.ts";
import { type CelToken, celTokens } from "../../model/cel-tokens.ts";

/** What an expression may be about. Others (Istio's `upstream_peer`, say) mean nothing to upstream Envoy: their label would always be empty. */
const ATTRIBUTES: ReadonlySet<string> = new Set(
  "request response source destination connection upstream metadata filter_state upstream_filter_state xds".split(" "),
);

const WORDS: ReadonlySet<string> = new Set(["in", "true", "false", "null"]);

/** A CEL expression as the value of a label of upstream Envoy's, as a log format; or why it cannot be. */
export function metricTagFormat(expression: string): { readonly format: string } | { readonly fault: string } {
  const tokens = celTokens(expression);
  if (typeof tokens === "string") return { fault: tokens };
  const words = withoutString(tokens.filter(({ kind }) => kind !== "end"));
  if (words.some(({ text }) => text === "+") && words.some(({ kind }) => kind === "text"))
    return { fault: "upstream Envoy does not join texts in labels of metrics" };
  const text = joined(words);
  const fault = celFault(text) ?? words.map((_, index) => wordFault(words, index)).find((one) => one !== undefined);
  return fault === undefined ? { format: `%CEL(${text})%` } : { fault };
}

/** Numbers become text without being told, and upstream Envoy has no function `string`: Istio's usual `string(destination.port)` does without. */
function withoutString(tokens: readonly CelToken[]): readonly CelToken[] {
  if (tokens[0]?.text !== "string" || tokens[1]?.text !== "(" || tokens.at(-1)?.text !== ")") return tokens;
  const inner = tokens.slice(2, -1);
  let depth = 0;
  for (const { kind, text } of inner) {
    if (kind !== "sign") continue;
    if (text === "(") depth += 1;
    if (text === ")") depth -= 1;
    if (depth < 0) return tokens;
  }
  return inner;
}

function wordFault(tokens: readonly CelToken[], index: number): string | undefined {
  const { kind, text } = tokens[index] ?? { kind: "end", text: "" };
  // It would end the command of the log format.
  if (text.includes("%")) return "a percent sign cannot stand in the value of a label";
  if (kind !== "name" || WORDS.has(text)) return undefined;
  const [before, after] = [tokens[index - 1]?.text, tokens[index + 1]?.text];
  if (before === "." || after === "(" || ATTRIBUTES.has(text)) return undefined;
  return `upstream Envoy has no attribute ${quote(text)}`;
}

/** With a space only where two words would become one. */
const joined = (tokens: readonly CelToken[]): string =>
  tokens.map(({ kind, text }, index) => (index > 0 && kind !== "sign" && tokens[index - 1]?.kind !== "sign" ? ` ${text}` : text)).join("");
