import { parseHostPort } from "./host-port.ts";

/** What the process part of mesh.yaml may look like. One description gives the type, the strict reader and the JSON Schema. */
export type Shape = TextShape | FlagShape | ListShape | DictShape | GroupShape;

interface Described {
  readonly about: string;
  /** A change takes effect only at the next start. */
  readonly restart?: true;
}
export interface TextShape extends Described {
  readonly is: "text";
  readonly default?: string;
  /** Default inside a pod, where it differs. */
  readonly defaultInPod?: string;
  readonly format?: "address" | "url" | "keySet";
  readonly required?: true;
}
export interface FlagShape extends Described {
  readonly is: "flag";
  readonly default: boolean;
  readonly defaultInPod?: boolean;
}
export interface ListShape extends Described {
  readonly is: "list";
  readonly of: Shape;
}
/** Names to texts; numbers and booleans are taken as their text, since YAML does not quote them. */
export interface DictShape extends Described {
  readonly is: "dict";
}
export interface GroupShape extends Described {
  readonly is: "group";
  readonly fields: Readonly<Record<string, Shape>>;
  /** At most one of these fields may be set. */
  readonly oneOf?: readonly string[];
}

/** The value a shape reads into. A text without default may be absent. */
export type Shaped<S> = S extends { is: "text" }
  ? string | (S extends { default: string } | { required: true } ? never : undefined)
  : S extends { is: "flag" }
    ? boolean
    : S extends { is: "list"; of: infer Of }
      ? readonly Shaped<Of>[]
      : S extends { is: "dict" }
        ? Readonly<Record<string, string>>
        : S extends { is: "group"; fields: infer F }
          ? { readonly [K in keyof F]: Shaped<F[K]> }
          : never;

type Path = readonly (string | number)[];
type FaultCode = "schema.unknown-field" | "schema.wrong-type" | "field.required" | "field.invalid" | "field.conflict";

export interface ShapeReader {
  readonly inPod: boolean;
  readonly report: (code: FaultCode, path: Path, message: string) => void;
}

/** Reads a value strictly; absent and null give the default. Every fault is reported, and reading goes on. */
export function readShape<S extends Shape>(shape: S, value: unknown, at: Place): Shaped<S> {
  return readAny(shape, value ?? undefined, at) as Shaped<S>;
}

/** Where in the document a value stands, and who wants to hear of faults. */
export interface Place {
  readonly path: Path;
  readonly reader: ShapeReader;
}

const inside = (at: Place, step: string | number): Place => ({ path: [...at.path, step], reader: at.reader });

function readAny(shape: Shape, value: unknown, at: Place): unknown {
  switch (shape.is) {
    case "text":
      return readText(shape, value, at);
    case "flag":
      if (typeof value === "boolean") return value;
      if (value !== undefined) wrongType(value, "true or false", at);
      return at.reader.inPod ? (shape.defaultInPod ?? shape.default) : shape.default;
    case "list":
      if (value === undefined) return [];
      if (Array.isArray(value)) return value.map((item, index) => readAny(shape.of, item ?? undefined, inside(at, index)));
      wrongType(value, "a list", at);
      return [];
    case "dict":
      return readDict(value, at);
    case "group":
      return readGroup(shape, value, at);
  }
}

function readText(shape: TextShape, value: unknown, at: Place): string | undefined {
  const fallback = at.reader.inPod ? (shape.defaultInPod ?? shape.default) : shape.default;
  if (value === undefined || (value === "" && shape.required === true)) {
    if (shape.required === true) at.reader.report("field.required", at.path, "must be set");
    return fallback;
  }
  if (typeof value !== "string") {
    wrongType(value, "a text", at);
    return fallback;
  }
  const fault = value === "" ? undefined : faultOfFormat(shape.format, value);
  if (fault !== undefined) at.reader.report("field.invalid", at.path, fault);
  return value;
}

function faultOfFormat(format: TextShape["format"], value: string): string | undefined {
  if (format === "url") return URL.canParse(value) && /^https?:/.test(value) ? undefined : `"${value}" is not an http or https URL`;
  if (format === "keySet") return isKeySet(value) ? undefined : "is no JSON Web Key Set: that is a JSON object with a list `keys`";
  if (format !== "address") return undefined;
  const parsed = parseHostPort(value);
  return typeof parsed === "string" ? parsed : undefined;
}

function isKeySet(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && Array.isArray(value.keys);
  } catch {
    return false;
  }
}

function readDict(value: unknown, at: Place): Record<string, string> {
  const dict: Record<string, string> = Object.create(null);
  if (value === undefined) return dict;
  if (!isRecord(value)) {
    wrongType(value, "a map of names to texts", at);
    return dict;
  }
  for (const [name, item] of Object.entries(value)) {
    if (typeof item === "string" || typeof item === "number" || typeof item === "boolean") dict[name] = String(item);
    else if (item !== null) wrongType(item, "a text", inside(at, name));
  }
  return dict;
}

function readGroup(shape: GroupShape, value: unknown, at: Place): Record<string, unknown> {
  const given = isRecord(value) ? value : {};
  if (value !== undefined && !isRecord(value)) wrongType(value, "a map", at);
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(shape.fields, name))
      at.reader.report("schema.unknown-field", [...at.path, name], `there is no field "${name}" here`);
  }
  const [first, second] = (shape.oneOf ?? []).filter((name) => (given[name] ?? "") !== "");
  if (second !== undefined) at.reader.report("field.conflict", [...at.path, second], `cannot be set together with ${first}`);
  return Object.fromEntries(
    Object.entries(shape.fields).map(([name, field]) => [name, readAny(field, given[name] ?? undefined, inside(at, name))]),
  );
}

function wrongType(value: unknown, wanted: string, at: Place): void {
  at.reader.report("schema.wrong-type", at.path, `must be ${wanted}, not ${nameOfType(value)}`);
}

/** The type alone: the value may be a secret. */
function nameOfType(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "a map";
  return typeof value === "string" ? "a text" : `a ${typeof value}`;
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);
