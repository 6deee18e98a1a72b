import { createHash } from "node:crypto";
import { stringify } from "yaml";
import { type Fields, isFields } from "../pod.ts";
import { isEqual, isTrue, printed } from "./go-values.ts";
import type { TemplateFunction } from "./template-functions.ts";

const LONGEST_REPEAT = 10_000;

const TEXT: Readonly<Record<string, TemplateFunction>> = {
  quote: (...values) => values.map((value) => JSON.stringify(printed(value))).join(" "),
  squote: (...values) => values.map((value) => `'${printed(value)}'`).join(" "),
  trunc: (length, text) => (Number(length) < 0 ? printed(text).slice(Number(length)) : printed(text).slice(0, Number(length))),
  trim: (text) => printed(text).trim(),
  trimAll: (set, text) => trimmed(printed(text), printed(set)),
  trimPrefix: (prefix, text) => (printed(text).startsWith(printed(prefix)) ? printed(text).slice(printed(prefix).length) : printed(text)),
  trimSuffix: (suffix, text) =>
    printed(suffix) !== "" && printed(text).endsWith(printed(suffix)) ? printed(text).slice(0, -printed(suffix).length) : printed(text),
  upper: (text) => printed(text).toUpperCase(),
  lower: (text) => printed(text).toLowerCase(),
  replace: (from, to, text) => printed(text).replaceAll(printed(from), printed(to)),
  hasPrefix: (prefix, text) => printed(text).startsWith(printed(prefix)),
  hasSuffix: (suffix, text) => printed(text).endsWith(printed(suffix)),
  repeat: (count, text) => printed(text).repeat(Math.min(Math.max(Number(count), 0), LONGEST_REPEAT)),
  nospace: (text) => printed(text).replace(/\s/g, ""),
  nindent: (spaces, text) => `\n${indented(Number(spaces), printed(text))}`,
  splitList: (separator, text) => printed(text).split(printed(separator)),
  join: (separator, list) => (Array.isArray(list) ? list.map(printed).join(printed(separator)) : printed(list)),
  toString: printed,
  b64enc: (text) => Buffer.from(printed(text)).toString("base64"),
  b64dec: (text) => Buffer.from(printed(text), "base64").toString("utf8"),
  sha256sum: (text) => createHash("sha256").update(printed(text)).digest("hex"),
  toJson: (value) => JSON.stringify(value ?? null),
  toPrettyJson: (value) => JSON.stringify(value ?? null, null, 2),
  fromJson: (text) => parsed(printed(text)),
  toYaml: (value) => stringify(value ?? null, { version: "1.1", lineWidth: 0 }),
};

const LISTS: Readonly<Record<string, TemplateFunction>> = {
  list: (...values) => values,
  append: (list, value) => [...listOf(list), value],
  prepend: (list, value) => [value, ...listOf(list)],
  concat: (...lists) => lists.flatMap(listOf),
  first: (list) => listOf(list)[0],
  last: (list) => listOf(list).at(-1),
  rest: (list) => listOf(list).slice(1),
  has: (value, list) => listOf(list).some((one) => isEqual(one, value)),
  uniq: (list) => [...new Set(listOf(list))],
  without: (list, ...values) => listOf(list).filter((one) => !values.some((value) => isEqual(one, value))),
  compact: (list) => listOf(list).filter(isTrue),
};

const MAPS: Readonly<Record<string, TemplateFunction>> = {
  dict: (...pairs) =>
    Object.fromEntries(
      pairs.flatMap((key, index): readonly [string, unknown][] => (index % 2 === 0 ? [[printed(key), pairs[index + 1] ?? ""]] : [])),
    ),
  get: (map, key) => (Object.hasOwn(mapOf(map), printed(key)) ? mapOf(map)[printed(key)] : ""),
  set: (map, key, value) => ({ ...mapOf(map), [printed(key)]: value }),
  hasKey: (map, key) => Object.hasOwn(mapOf(map), printed(key)),
  keys: (map) => Object.keys(mapOf(map)),
  values: (map) => Object.values(mapOf(map)),
  pick: (map, ...names) => Object.fromEntries(Object.entries(mapOf(map)).filter(([key]) => names.includes(key))),
  merge: (...maps) => Object.assign({}, ...maps.map(mapOf).reverse()),
};

const NUMBERS: Readonly<Record<string, TemplateFunction>> = {
  int: (value) => Math.trunc(Number(printed(value)) || 0),
  int64: (value) => Math.trunc(Number(printed(value)) || 0),
  add: (...values) => values.reduce<number>((sum, value) => sum + Number(value), 0),
  sub: (a, b) => Number(a) - Number(b),
  mul: (...values) => values.reduce<number>((product, value) => product * Number(value), 1),
  div: (a, b) => whole(Number(a) / Number(b)),
  mod: (a, b) => whole(Number(a) % Number(b)),
  max: (...values) => Math.max(...values.map(Number)),
  min: (...values) => Math.min(...values.map(Number)),
};

const CHOICES: Readonly<Record<string, TemplateFunction>> = {
  default: (fallback, value) => (isTrue(value) ? value : fallback),
  empty: (value) => !isTrue(value),
  coalesce: (...values) => values.find(isTrue),
  ternary: (yes, no, condition) => (isTrue(condition) ? yes : no),
  required: (message, value) => {
    if (value === undefined || value === null || value === "") throw new Error(printed(message));
    return value;
  },
  fail: (message) => {
    throw new Error(printed(message));
  },
};

/** The functions of the Sprig library that templates for pods use. None of them looks at the process, the clock or the network. */
export const SPRIG_FUNCTIONS: Readonly<Record<string, TemplateFunction>> = { ...TEXT, ...LISTS, ...MAPS, ...NUMBERS, ...CHOICES };

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const mapOf = (value: unknown): Fields => (isFields(value) ? value : {});

function whole(value: number): number {
  if (!Number.isFinite(value)) throw new Error("division by zero");
  return Math.trunc(value);
}

function trimmed(text: string, set: string): string {
  let from = 0;
  let to = text.length;
  while (from < to && set.includes(text.charAt(from))) from += 1;
  while (to > from && set.includes(text.charAt(to - 1))) to -= 1;
  return text.slice(from, to);
}

function indented(spaces: number, text: string): string {
  const margin = " ".repeat(Math.min(Math.max(spaces, 0), 200));
  return text
    .split("\n")
    .map((line) => margin + line)
    .join("\n");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("what fromJson is given is no JSON");
  }
}
