import type { Report } from "../kind-def.ts";
import type { FieldPath } from "../problem.ts";
import type { ProblemCode } from "../problem-codes.ts";

/** A place in a document to report faults at. Its path is put together only when something is wrong there. */
export interface Place {
  /** The place of a field, or of one element, below this one. */
  in(...parts: readonly (string | number)[]): Place;
  /** Reports a fault here. */
  fault(code: ProblemCode, message: string): void;
  /** Reports here what a check found, if it found anything. */
  check(code: ProblemCode, fault: string | undefined): void;
}

/** The root of all places of one document: `path` is where the value stands that is about to be judged. */
export function placeOf(report: Report, path: FieldPath): Place {
  return {
    in: (...parts) => placeOf(report, [...path, ...parts]),
    fault: (code, message) => report(code, path, message),
    check: (code, fault) => {
      if (fault !== undefined) report(code, path, fault);
    },
  };
}
