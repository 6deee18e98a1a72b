import { type Fields, isFields } from "../pod.ts";

/** Whether Go's templates take a value for true: all but false, 0, and what is empty. */
export function isTrue(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === 0 || value === "" || Number.isNaN(value)) return false;
  if (Array.isArray(value)) return value.length > 0;
  return isFields(value) ? Object.keys(value).length > 0 : true;
}

/** A value as text. What is absent is nothing, where Go writes `<no value>`: that helps nobody in YAML. */
export function printed(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return `[${value.map(printed).join(" ")}]`;
  if (!isFields(value)) return String(value);
  return `map[${Object.keys(value)
    .sort()
    .map((key) => `${key}:${printed(value[key])}`)
    .join(" ")}]`;
}

/**
 * A field of a value. Templates name fields as Go does (`.Spec.DNSPolicy`), values carry Kubernetes' JSON names: both are looked for. Getters of
 * messages are fields too, and the wrapper of an optional value is the value.
 */
export function fieldOf(value: unknown, name: string): unknown {
  if (!isFields(value)) return name === "Value" || name === "GetValue" || name === "String" ? value : undefined;
  const found = ownField(value, name);
  return found === undefined && name.length > 3 && name.startsWith("Get") ? ownField(value, name.slice(3)) : found;
}

function ownField(value: Fields, name: string): unknown {
  for (const candidate of [name, name.charAt(0).toLowerCase() + name.slice(1), name.replace(/^[A-Z]+(?=[A-Z][a-z]|$)/, lower)])
    if (Object.hasOwn(value, candidate)) return value[candidate];
  return undefined;
}

const lower = (text: string): string => text.toLowerCase();

/** Equality of simple values; what is absent equals what is empty, as the zero value of a field would. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (isNothing(a) || isNothing(b)) return !isTrue(a) && !isTrue(b);
  return typeof a === "object" || typeof b === "object" ? false : a === b || String(a) === String(b);
}

const isNothing = (value: unknown): boolean => value === null || value === undefined;
