import type { ObjectRef } from "./object.ts";
import { PROBLEM_CODES, type ProblemCode } from "./problem-codes.ts";

/** The way to a field: `["spec", "http", 0, "route"]`. */
export type FieldPath = readonly (string | number)[];

/** A fault in what a user wrote. A value: collected, served by webhooks, status and `istioctl validate`; never thrown. */
export interface Problem {
  readonly code: ProblemCode;
  readonly level: "error" | "warning";
  readonly object: ObjectRef;
  readonly path: FieldPath; // ["spec", "http", 0, "route"]
  readonly message: string;
  readonly file?: string;
  readonly line?: number;
}

/** Whether an object with this problem is left out, or only told of. */
export const levelOf = (code: ProblemCode): "error" | "warning" => PROBLEM_CODES[code].level;

/** `spec.http[0].route`, as users write field paths. */
export function formatPath(path: FieldPath): string {
  let text = "";
  for (const part of path) text += typeof part === "number" ? `[${part}]` : text === "" ? part : `.${part}`;
  return text;
}
