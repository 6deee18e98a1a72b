import type { DescField, Registry } from "@bufbuild/protobuf";
import type { Report } from "../kind-def.ts";
import type { FieldPath } from "../problem.ts";
import type { ProblemCode } from "../problem-codes.ts";

/** Deeper nesting is refused: no real object comes near, and it would cost stack. */
const MAX_DEPTH = 100;

/** Most values one document may hold, however YAML aliases multiply them. The largest real object has a tenth of it. */
const MAX_VALUES = 1_000_000;

/** State of one reading: where we are, and where faults go. `path` grows and shrinks with the walk, so that healthy input allocates nothing for it. */
export interface Reading {
  readonly report: Report;
  readonly path: (string | number)[];
  /** Code for fields the schema does not have; undefined lets them pass. */
  readonly unknownField: ProblemCode | undefined;
  /** Where the messages inside google.protobuf.Any are found, or who reads them. "unread" leaves them out, "refuse" reports them. */
  readonly anyContent: Registry | AnyReader | "unread" | "refuse";
  /** Values that may still be read. */
  left: number;
}

/** What a reading may be told; the rest is state. */
export type ReadingOptions = Pick<Reading, "report" | "unknownField" | "anyContent"> & { readonly path: FieldPath };

/** Starts a reading at a place of the document. */
export const startReading = (options: ReadingOptions): Reading => ({ ...options, path: [...options.path], left: MAX_VALUES });

/** Enters a list or object with `size` members. False when it is too deep or too much was read, which is reported once. */
export function enter(reading: Reading, size: number): boolean {
  if (reading.left < 0) return false;
  reading.left -= size + 1;
  if (reading.path.length <= MAX_DEPTH && reading.left >= 0) return true;
  reading.left = -1;
  refuse(reading, "document.unreadable", reading.path.length > MAX_DEPTH ? "nests too deeply" : "holds too many values");
  return false;
}

/** Turns a JSON-shaped value into what a field holds; undefined when it was refused and reported. */
export type Reader = (json: unknown, reading: Reading) => unknown;

/** Reads what stands in a google.protobuf.Any of a field, given with its "@type". */
export type AnyReader = (json: Readonly<Record<string, unknown>>, reading: Reading, field: DescField) => unknown;

/** Reports a fault at the present place. */
export function refuse(reading: Reading, code: ProblemCode, message: string): undefined {
  reading.report(code, [...reading.path], message);
  return undefined;
}

/** Reports that a value has another type than the field wants. */
export const refuseType = (reading: Reading, json: unknown, wanted: string): undefined =>
  refuse(reading, "schema.wrong-type", `must be ${wanted}, not ${typeName(json)}`);

/** Whether a value of JSON is an object, and no list. */
export const isRecord = (json: unknown): json is Readonly<Record<string, unknown>> =>
  typeof json === "object" && json !== null && !Array.isArray(json);

/** Names the JSON type of a value for messages; never its content, which may be secret. */
export function typeName(json: unknown): string {
  if (json === null) return "null";
  if (Array.isArray(json)) return "a list";
  switch (typeof json) {
    case "object":
      return "an object";
    case "string":
      return "a text";
    case "undefined":
      return "nothing";
    default:
      return `a ${typeof json}`;
  }
}
