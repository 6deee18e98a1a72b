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
export const placeOf = (report: Report, path: FieldPath): Place => new PlaceBelow(report, undefined, path);

/** A link of the chain from the root: thousands are made for one large object, nearly all for nothing, so they hold no path of their own. */
class PlaceBelow implements Place {
  readonly #report: Report;
  readonly #above: PlaceBelow | undefined;
  readonly #parts: FieldPath;

  constructor(report: Report, above: PlaceBelow | undefined, parts: FieldPath) {
    this.#report = report;
    this.#above = above;
    this.#parts = parts;
  }

  in(...parts: readonly (string | number)[]): Place {
    return new PlaceBelow(this.#report, this, parts);
  }

  fault(code: ProblemCode, message: string): void {
    this.#report(code, this.#path(), message);
  }

  check(code: ProblemCode, fault: string | undefined): void {
    if (fault !== undefined) this.fault(code, fault);
  }

  #path(): FieldPath {
    return this.#above === undefined ? this.#parts : [...this.#above.#path(), ...this.#parts];
  }
}
