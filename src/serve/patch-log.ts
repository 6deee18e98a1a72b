import type { Log } from "../base/log.ts";
import type { Problem } from "../config/problem.ts";
import type { ChangeSummary } from "../config/store/store-types.ts";
import type { CompiledFilter } from "../generate/patches/compile.ts";
import type { LeftOut } from "../generate/patches/patched-kind.ts";
import { objectOf } from "../generate/patches/patched-provider.ts";

/** Says which patches of EnvoyFilters are left out and why. */
export interface PatchLog {
  /** A patch is left out of a resource. Said once per patch: what spoils one listener spoils many. */
  leftOut(fault: LeftOut): void;
  /** EnvoyFilters that a commit brought: what is wrong with them wherever they are applied. */
  committed(summary: Pick<ChangeSummary, "added" | "changed" | "removed">, compiled: (key: string) => CompiledFilter | undefined): void;
  /** What was said of an EnvoyFilter as it is now, as problems of it. */
  problemsOf(key: string): readonly Problem[];
}

/** Remembers what was said of the patches that are in force, and nothing of those that are gone. */
export function createPatchLog(log: Log): PatchLog {
  const said = new Map<string, Map<string, Problem>>();
  const say = (patch: string, fields: { readonly resource?: string; readonly reason: string }): void => {
    const object = objectOf(patch);
    const known = said.get(object) ?? new Map<string, Problem>();
    if (known.has(patch)) return;
    const index = Number(/#(\d+)@/.exec(patch)?.[1] ?? 0);
    said.set(object, known.set(patch, problemOf(object, { index, ...fields })));
    log.warn({ object, patch: index, ...fields }, "a patch is left out; /debug/envoyfilterz tells what each patch does");
  };
  return {
    leftOut: ({ patch, ...fields }) => say(patch, fields),
    problemsOf: (key) => [...(said.get(key)?.values() ?? [])],
    committed({ added, changed, removed }, compiled) {
      for (const key of [...added, ...changed, ...removed]) said.delete(key);
      for (const key of [...added, ...changed].filter((one) => one.startsWith("EnvoyFilter/"))) {
        const filter = compiled(key);
        for (const { index, faults } of filter?.patches ?? []) {
          if (faults.length > 0) say(`${key}#${index}@${filter?.hash}`, { reason: faults.join("; ") });
        }
      }
    },
  };
}

/** A patch that does nothing is no error: the rest of its filter is in force. */
function problemOf(
  object: string,
  { index, reason, resource }: { readonly index: number; readonly reason: string; readonly resource?: string },
): Problem {
  const [kind = "", namespace = "", name = ""] = object.split("/");
  return {
    code: "field.ineffective",
    level: "warning",
    object: { kind, namespace, name },
    path: ["spec", "configPatches", index],
    message: resource === undefined ? `left out: ${reason}` : `left out of ${resource}: ${reason}`,
  };
}
