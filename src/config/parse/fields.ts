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
  return new RecordFields(json, report, { above: path });
}

/** Where an object stands: its name in what is above it. Clusters have thousands of objects in which nothing is wrong, so paths are put together when asked for. */
interface Place {
  readonly above: FieldPath | RecordFields;
  readonly name?: string;
  /** Which element of the list of that name. */
  readonly index?: number;
}

class RecordFields implements Fields {
  readonly #record: Readonly<Record<string, unknown>>;
  readonly #report: Report;
  readonly #place: Place;

  constructor(json: unknown, report: Report, place: Place) {
    this.#record = isRecord(json) ? json : EMPTY;
    this.#report = report;
    this.#place = place;
    if (this.#record === EMPTY && json !== undefined && json !== null) this.#wrong(this.path, "an object", json);
  }

  get path(): FieldPath {
    const { above, name, index } = this.#place;
    const path = above instanceof RecordFields ? above.path : above;
    return name === undefined ? path : [...path, name, ...(index === undefined ? [] : [index])];
  }

  wrong(at: FieldPath, wanted: string): void {
    this.#report("schema.wrong-type", [...this.path, ...at], `must be ${wanted}`);
  }

  has(name: string): boolean {
    return this.#given(name) !== undefined;
  }

  text(name: string): string | undefined {
    return this.#typed(name, "a text", isText);
  }

  number(name: string): number | undefined {
    return this.#typed(name, "a number", isNumber);
  }

  flag(name: string): boolean | undefined {
    return this.#typed(name, "true or false", isFlag);
  }

  numberOrText(name: string): number | string | undefined {
    return this.#typed(name, "a number or a text", isNumberOrText);
  }

  texts(name: string): readonly string[] {
    const list = this.#typed(name, "a list", isList) ?? [];
    return list.filter(
      (item, index): item is string => isText(item) || this.#wrong([...this.path, name, index], "a text", item) !== undefined,
    );
  }

  map(name: string): Readonly<Record<string, string>> {
    const record = this.#typed(name, "an object", isRecord) ?? {};
    return textMap(record, (key, value) => this.#wrong([...this.path, name, key], "a text", value));
  }

  object(name: string): Fields {
    return new RecordFields(this.#given(name), this.#report, { above: this, name });
  }

  objects(name: string): readonly Fields[] {
    const list = this.#typed(name, "a list", isList) ?? [];
    return list.map((item, index) => new RecordFields(item ?? undefined, this.#report, { above: this, name, index }));
  }

  /** Null is absent. */
  #given(name: string): unknown {
    return Object.hasOwn(this.#record, name) ? (this.#record[name] ?? undefined) : undefined;
  }

  #typed<T>(name: string, wanted: string, is: (value: unknown) => value is T): T | undefined {
    const value = this.#given(name);
    return value === undefined || is(value) ? value : this.#wrong([...this.path, name], wanted, value);
  }

  #wrong(at: FieldPath, wanted: string, found: unknown): undefined {
    this.#report("schema.wrong-type", at, `must be ${wanted}, not ${typeName(found)}`);
  }
}

const EMPTY: Readonly<Record<string, unknown>> = Object.freeze({});

const isText = (value: unknown): value is string => typeof value === "string";
const isNumber = (value: unknown): value is number => typeof value === "number";
const isFlag = (value: unknown): value is boolean => typeof value === "boolean";
const isNumberOrText = (value: unknown): value is number | string => isNumber(value) || isText(value);
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
