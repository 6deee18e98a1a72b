import { isFields } from "../pod.ts";
import { isEqual, isTrue, printed } from "./go-values.ts";
import type { TemplateFunction } from "./template-functions.ts";

/** Functions of Go's text/template itself. */
export const CORE_FUNCTIONS: Readonly<Record<string, TemplateFunction>> = {
  not: (value) => !isTrue(value),
  eq: (first, ...rest) => rest.some((one) => isEqual(first, one)),
  ne: (a, b) => !isEqual(a, b),
  lt: (a, b) => compared(a, b) < 0,
  le: (a, b) => compared(a, b) <= 0,
  gt: (a, b) => compared(a, b) > 0,
  ge: (a, b) => compared(a, b) >= 0,
  len: (value) => (typeof value === "string" || Array.isArray(value) ? value.length : isFields(value) ? Object.keys(value).length : 0),
  index: (value, ...keys) => keys.reduce(itemOf, value),
  slice: (value, from = 0, to = undefined) =>
    typeof value === "string" || Array.isArray(value) ? value.slice(Number(from), to === undefined ? undefined : Number(to)) : value,
  print: (...values) => values.map(printed).join(""),
  println: (...values) => `${values.map(printed).join(" ")}\n`,
  printf: (format, ...values) => formatted(printed(format), values),
};

function compared(a: unknown, b: unknown): number {
  if (typeof a === "number" || typeof b === "number") return Number(a ?? 0) - Number(b ?? 0);
  const [left, right] = [printed(a), printed(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}

function itemOf(value: unknown, key: unknown): unknown {
  if (value === null || value === undefined) return undefined;
  if (Array.isArray(value)) {
    const at = Number(key);
    if (!Number.isInteger(at) || at < 0 || at >= value.length)
      throw new Error(`index ${printed(key)} is outside of a list of ${value.length}`);
    return value[at];
  }
  return isFields(value) && Object.hasOwn(value, String(key)) ? value[String(key)] : undefined;
}

/** `%s`, `%v`, `%d`, `%q`, `%t` and `%%`. */
function formatted(format: string, values: readonly unknown[]): string {
  let next = 0;
  return format.replace(/%[-+# 0-9.]*([a-zA-Z%])/g, (verb, letter: string) => {
    if (letter === "%") return "%";
    const value = values[next++];
    if (letter === "q") return JSON.stringify(printed(value));
    if ("svdt".includes(letter)) return printed(value);
    throw new Error(`printf does not know ${verb}`);
  });
}
