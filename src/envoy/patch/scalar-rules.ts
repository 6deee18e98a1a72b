import type { DescEnum } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { type DurationRules, type EnumRules, type FieldRules, KnownRegex, type StringRules } from "../../gen/validate/validate_pb.js";
import { containsPattern } from "./regex.ts";

/** Why a single value breaks its rules; undefined where it keeps them. */
export function scalarFault(rules: FieldRules, value: unknown, type: DescEnum | undefined): string | undefined {
  const own = rules.type;
  switch (own.case) {
    case "string":
      return typeof value === "string" ? textFault(own.value, value) : undefined;
    case "enum":
      return typeof value === "number" && type !== undefined ? enumFault(own.value, value, type) : undefined;
    case "duration":
      return durationFault(own.value, value as Duration);
    case "bytes":
      return value instanceof Uint8Array && has(own.value, "minLen") && value.length < own.value.minLen ? "must not be empty" : undefined;
    case "float":
    case "double":
    case "int32":
    case "int64":
    case "uint32":
    case "uint64":
      return typeof value === "number" || typeof value === "bigint" ? numberFault(own.value, value) : undefined;
    case "bool":
      return has(own.value, "const") && value !== own.value.const ? `must be ${own.value.const}` : undefined;
    default:
      return undefined;
  }
}

/** Whether a rule is given: an absent one reads as the default of its type. */
const has = (rules: object, name: string): boolean => Object.hasOwn(rules, name);

interface NumberRules {
  readonly const: number | bigint;
  readonly lt: number | bigint;
  readonly lte: number | bigint;
  readonly gt: number | bigint;
  readonly gte: number | bigint;
  readonly in: readonly (number | bigint)[];
  readonly notIn: readonly (number | bigint)[];
}

function numberFault(rules: NumberRules, value: number | bigint): string | undefined {
  if (has(rules, "const") && value !== rules.const) return `must be ${rules.const}`;
  if (has(rules, "gt") && !(value > rules.gt)) return `must be more than ${rules.gt}`;
  if (has(rules, "gte") && !(value >= rules.gte)) return `must be at least ${rules.gte}`;
  if (has(rules, "lt") && !(value < rules.lt)) return `must be less than ${rules.lt}`;
  if (has(rules, "lte") && !(value <= rules.lte)) return `must be at most ${rules.lte}`;
  return listFault(rules, value);
}

function listFault<T extends string | number | bigint>(
  rules: { readonly in: readonly T[]; readonly notIn: readonly T[] },
  value: T,
): string | undefined {
  if (rules.in.length > 0 && !rules.in.includes(value)) return `must be one of ${rules.in.join(", ")}`;
  return rules.notIn.includes(value) ? `must not be ${value}` : undefined;
}

function enumFault(rules: EnumRules, value: number, type: DescEnum): string | undefined {
  if (rules.definedOnly && type.value[value] === undefined) return `has no value ${value}`;
  return listFault(rules, value) === undefined ? undefined : `must not be ${type.value[value]?.name ?? value}`;
}

/** Characters that headers may consist of; the API calls these patterns by name. */
const HEADER_PATTERNS: Readonly<Record<KnownRegex, { readonly strict: RegExp; readonly loose: RegExp } | undefined>> = {
  [KnownRegex.UNKNOWN]: undefined,
  [KnownRegex.HTTP_HEADER_NAME]: { strict: /^:?[0-9a-zA-Z!#$%&'*+\-.^_|~`]+$/, loose: /^[^\0\r\n]+$/ },
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what it is about
  [KnownRegex.HTTP_HEADER_VALUE]: { strict: /^[^\0-\u0008\u000A-\u001F\u007F]*$/, loose: /^[^\0\r\n]*$/ },
};

function textFault(rules: StringRules, value: string): string | undefined {
  if (rules.ignoreEmpty && value === "") return undefined;
  const length = [...value].length;
  const bytes = Buffer.byteLength(value);
  if (has(rules, "const") && value !== rules.const) return `must be ${JSON.stringify(rules.const)}`;
  if ((has(rules, "minLen") && length < rules.minLen) || (has(rules, "minBytes") && bytes < rules.minBytes))
    return value === "" ? "must be set" : "is too short";
  if ((has(rules, "maxLen") && length > rules.maxLen) || (has(rules, "maxBytes") && bytes > rules.maxBytes)) return "is too long";
  if (has(rules, "prefix") && !value.startsWith(rules.prefix)) return `must begin with ${JSON.stringify(rules.prefix)}`;
  if (has(rules, "suffix") && !value.endsWith(rules.suffix)) return `must end with ${JSON.stringify(rules.suffix)}`;
  if (has(rules, "pattern") && !containsPattern(rules.pattern, value)) return `must match ${rules.pattern}`;
  if (rules.wellKnown.case === "wellKnownRegex") {
    const pattern = HEADER_PATTERNS[rules.wellKnown.value];
    const expression = rules.strict ? pattern?.strict : pattern?.loose;
    if (expression !== undefined && value !== "" && !expression.test(value)) return "has characters that are not allowed in a header";
  }
  return listFault(rules, value);
}

function durationFault(rules: DurationRules, value: Duration): string | undefined {
  const { gt, gte, lt, lte } = rules;
  if (gt !== undefined && !(nanos(value) > nanos(gt))) return `must be more than ${seconds(gt)}`;
  if (gte !== undefined && !(nanos(value) >= nanos(gte))) return `must be at least ${seconds(gte)}`;
  if (lt !== undefined && !(nanos(value) < nanos(lt))) return `must be less than ${seconds(lt)}`;
  return lte !== undefined && !(nanos(value) <= nanos(lte)) ? `must be at most ${seconds(lte)}` : undefined;
}

const nanos = (duration: Duration): bigint => duration.seconds * 1_000_000_000n + BigInt(duration.nanos);
const seconds = (duration: Duration): string => `${Number(nanos(duration)) / 1e9}s`;
