import { formatOrigin } from "../object.ts";
import { levelOf, type Problem } from "../problem.ts";
import type { ProblemCode } from "../problem-codes.ts";
import type { Judged } from "./judge.ts";
import type { SourceState } from "./source-state.ts";

/** What is wrong with the documents of one key: their own faults, that another one of the same source or an earlier source wins. */
export function* problemsOfKey(key: string, states: readonly SourceState[], inForce: string | undefined): Iterable<Problem> {
  for (const state of states) {
    const [owner, ...others] = state.documents(key);
    if (owner === undefined) continue;
    yield* owner.problems;
    if (inForce !== undefined && inForce !== state.name && isBefore(inForce, state.name, states)) {
      yield problemOf(owner, "object.shadowed", `not used: the source ${inForce} holds the same object and comes first`);
    }
    for (const other of others) {
      yield* other.problems;
      yield problemOf(other, "object.duplicate", `${formatOrigin(owner.origin)} holds the same object and comes first`);
    }
  }
}

/** Whether anything is wrong with them. */
export function isFaulty(key: string, states: readonly SourceState[], inForce: string | undefined): boolean {
  for (const state of states) {
    const documents = state.documents(key);
    const [owner] = documents;
    // As with nearly all: one document, in which nothing is wrong, and it is in force.
    if (owner === undefined || (documents.length === 1 && owner.problems.length === 0 && state.name === inForce)) continue;
    for (const _ of problemsOfKey(key, states, inForce)) return true;
  }
  return false;
}

/** In order of file and line. */
export const sortProblems = (problems: Iterable<Problem>): Problem[] =>
  [...problems].sort(
    (a, b) => compare(a.file ?? "", b.file ?? "") || (a.line ?? 0) - (b.line ?? 0) || compare(a.object.name, b.object.name),
  );

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function isBefore(first: string, second: string, states: readonly SourceState[]): boolean {
  const names = states.map((state) => state.name);
  return names.indexOf(first) < names.indexOf(second);
}

function problemOf({ origin, ref, slot }: Judged, code: ProblemCode, message: string): Problem {
  return {
    code,
    level: levelOf(code),
    object: ref ?? { kind: "", namespace: "", name: slot },
    path: [],
    message,
    ...(origin.file !== undefined && { file: origin.file }),
    ...(origin.line !== undefined && { line: origin.line }),
  };
}
