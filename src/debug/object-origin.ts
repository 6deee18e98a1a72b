import { formatOrigin, objectKey } from "../config/object.ts";
import { formatPath, type Problem } from "../config/problem.ts";
import type { ConfigStore, ObjectStatus } from "../config/store/store-types.ts";
import type { ObjectOrigin, ProblemRecord } from "./api-types.ts";
import type { DebugDeps } from "./debug-deps.ts";

/** Says of object keys where they are written, as far as it is known. Made for one answer: it remembers what it was asked. */
export function originFinder(store: Pick<DebugDeps["store"], "status">): (key: string) => ObjectOrigin {
  const known = new Map<string, ObjectOrigin>();
  return (key) => {
    const origin = known.get(key) ?? objectOrigin(key, store.status(key));
    known.set(key, origin);
    return origin;
  };
}

function objectOrigin(key: string, status: ObjectStatus | undefined): ObjectOrigin {
  return {
    object: key,
    ...(status?.origin !== undefined && { at: formatOrigin(status.origin) }),
    ...(status?.state === "stale" && { stale: true as const }),
  };
}

/** A problem as JSON, its field path in the form users write. */
export function problemRecord({ code, level, object, path, message, file, line }: Problem): ProblemRecord {
  return {
    code,
    level,
    object: { kind: object.kind, namespace: object.namespace, name: object.name },
    path: formatPath(path),
    message,
    ...(file !== undefined && { file }),
    ...(line !== undefined && { line }),
  };
}

/** A time as ISO text. */
export const isoTime = (ms: number): string => new Date(ms).toISOString();

/** A problem with the file and line of its object, where it does not say them itself. */
export function placed(problem: Problem, store: Pick<ConfigStore, "origin">): Problem {
  if (problem.file !== undefined) return problem;
  const { file, line } = store.origin(objectKey(problem.object)) ?? {};
  return { ...problem, ...(file !== undefined && { file }), ...(line !== undefined && { line }) };
}
