import type { Log } from "../base/log.ts";
import type { ChangeSummary } from "../config/store/store-types.ts";
import type { CompiledFilter } from "../generate/patches/compile.ts";
import type { LeftOut } from "../generate/patches/patched-kind.ts";
import { objectOf } from "../generate/patches/patched-provider.ts";

/** Says which patches of EnvoyFilters are left out and why. */
export interface PatchLog {
  /** A patch is left out of a resource. Said once per patch: what spoils one listener spoils many. */
  leftOut(fault: LeftOut): void;
  /** EnvoyFilters that a commit brought: what is wrong with them wherever they are applied. */
  committed(summary: Pick<ChangeSummary, "added" | "changed">, compiled: (key: string) => CompiledFilter | undefined): void;
}

export function createPatchLog(log: Log): PatchLog {
  const said = new Set<string>();
  const say = (patch: string, fields: { readonly resource?: string; readonly reason: string }): void => {
    if (said.has(patch)) return;
    said.add(patch);
    const index = Number(/#(\d+)@/.exec(patch)?.[1] ?? 0);
    log.warn({ object: objectOf(patch), patch: index, ...fields }, "a patch is left out; /debug/envoyfilterz tells what each patch does");
  };
  return {
    leftOut: ({ patch, ...fields }) => say(patch, fields),
    committed({ added, changed }, compiled) {
      for (const key of [...added, ...changed].filter((one) => one.startsWith("EnvoyFilter/"))) {
        const filter = compiled(key);
        for (const { index, faults } of filter?.patches ?? []) {
          if (faults.length > 0) say(`${key}#${index}@${filter?.hash}`, { reason: faults.join("; ") });
        }
      }
    },
  };
}
