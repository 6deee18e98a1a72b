import type { ConfigObject } from "../../config/object.ts";
import { type FieldPath, levelOf, type Problem } from "../../config/problem.ts";
import type { ProblemCode } from "../../config/problem-codes.ts";

/** What is wrong with an object beside others: it reads well by itself. */
export interface Finding {
  readonly code: ProblemCode;
  readonly path: FieldPath;
  readonly message: string;
}

/** A finding at a path below `spec`. */
export const finding = (code: ProblemCode, path: FieldPath, message: string): Finding => ({ code, path: ["spec", ...path], message });

/** The finding as a problem of its object; how serious it is goes by its code. */
export const problemOf = ({ kind, namespace, name }: Pick<ConfigObject, "kind" | "namespace" | "name">, found: Finding): Problem => ({
  ...found,
  level: levelOf(found.code),
  object: { kind, namespace, name },
});
