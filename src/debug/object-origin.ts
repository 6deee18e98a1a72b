import { formatOrigin } from "../config/object.ts";
import { formatPath, type Problem } from "../config/problem.ts";
import type { ObjectOrigin, ProblemRecord } from "./api-types.ts";
import type { DebugDeps } from "./debug-deps.ts";

/** Where an object is written, for people: `file:line` as far as it is known. */
export function objectOrigin(store: Pick<DebugDeps["store"], "origin">, key: string): ObjectOrigin {
  const origin = store.origin(key);
  return origin === undefined ? { object: key } : { object: key, at: formatOrigin(origin) };
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
