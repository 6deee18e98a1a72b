import type { Report } from "../kind-def.ts";
import type { FieldPath } from "../problem.ts";
import { isRecord, typeName } from "./reading.ts";

/**
 * Reads single fields of a Kubernetes object into plain records. Lenient where Kubernetes is: fields we do not read pass unseen, null is absent;
 * a field we do read must have its type. Only the types of values go into messages, never the values.
 */
export interface Fields {
  readonly path: FieldPath;
  text(name: string): string | undefined;
  number(name: string): number | undefined;
  flag(name: string): boolean | undefined;
  texts(name: string): readonly string[];
  map(name: string): Readonly<Record<string, string>>;
  /** Fields of an object below; of nothing at all where it is absent. */
  object(name: string): Fields;
  /** Fields of each element of a list of objects. */
  objects(name: string): readonly Fields[];
  has(name: string): boolean;
  /** Reports that something below has another form than it must have. */
  wrong(at: FieldPath, wanted: string): void;
  /** A number or a text, as Kubernetes' IntOrString. */
  numberOrText(name: string): number | string | undefined;
}

/** Opens an object for reading. Anything but an object is reported and read as an empty one. */
export function fieldsOf(json: unknown, report: Report, path: FieldPath): Fields {
  const record = isRecord(json) ? json : {};
  const wrong = (at: FieldPath, wanted: string, found: unknown): undefined =>
    report("schema.wrong-type", at, `must be ${wanted}, not ${typeName(found)}`) as undefined;
  if (!isRecord(json) && json !== undefined && json !== null) wrong(path, "an object", json);
  const given = (name: string): unknown => (Object.hasOwn(record, name) ? (record[name] ?? undefined) : undefined);
  const typed = <T>(name: string, wanted: string, is: (value: unknown) => value is T): T | undefined => {
    const value = given(name);
    return value === undefined || is(value) ? value : wrong([...path, name], wanted, value);
  };
  const listOf = <T>(name: string, wanted: string, is: (value: unknown) => value is T): readonly T[] => {
    const list = typed(name, "a list", isList) ?? [];
    return list.filter((item, index): item is T => is(item) || wrong([...path, name, index], wanted, item) !== undefined);
  };
  return {
    path,
    wrong: (at, wanted) => report("schema.wrong-type", [...path, ...at], `must be ${wanted}`),
    has: (name) => given(name) !== undefined,
    text: (name) => typed(name, "a text", isText),
    number: (name) => typed(name, "a number", isNumber),
    flag: (name) => typed(name, "true or false", isFlag),
    numberOrText: (name) => typed(name, "a number or a text", (value): value is number | string => isNumber(value) || isText(value)),
    texts: (name) => listOf(name, "a text", isText),
    map: (name) => textMap(typed(name, "an object", isRecord) ?? {}, (key, value) => wrong([...path, name, key], "a text", value)),
    object: (name) => fieldsOf(given(name), report, [...path, name]),
    objects: (name) =>
      (typed(name, "a list", isList) ?? []).map((item, index) => fieldsOf(item ?? undefined, report, [...path, name, index])),
  };
}

const isText = (value: unknown): value is string => typeof value === "string";
const isNumber = (value: unknown): value is number => typeof value === "number";
const isFlag = (value: unknown): value is boolean => typeof value === "boolean";
const isList = (value: unknown): value is readonly unknown[] => Array.isArray(value);

function textMap(
  record: Readonly<Record<string, unknown>>,
  wrong: (key: string, value: unknown) => void,
): Readonly<Record<string, string>> {
  const map: Record<string, string> = {};
  for (const [key, value] of Object.entries(record)) {
    if (typeof value === "string" && key !== "__proto__") map[key] = value;
    else if (value !== null) wrong(key, value);
  }
  return map;
}
