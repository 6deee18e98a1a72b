import type { ProxyView } from "../../model/proxy.ts";
import type { ResourceProvider, Wanted } from "../../xds/provider.ts";
import { type PatchedKind, type PatchedSet, unpatchedOf } from "./patched-kind.ts";
import type { Plans } from "./plan.ts";

/** A provider whose resources are patched, and what became of them. */
export interface PatchedProvider {
  readonly provider: ResourceProvider;
  /** What patches did to what a proxy wants; undefined where none is for this kind. */
  outcome(view: ProxyView, wanted: Wanted): PatchedSet | undefined;
}

/** Puts patching on top of a provider: it goes on knowing nothing of it. */
export function patchedProvider(base: ResourceProvider, kind: PatchedKind, plans: Plans): PatchedProvider {
  return {
    outcome: (view, wanted) => kind.patched(plans.of(view), view, base.offered(view, wanted)),
    provider: {
      ...base,
      plain: unpatchedOf,
      *prepare(view, wanted) {
        yield* base.prepare(view, wanted);
        const plan = plans.of(view);
        if (plan.patches.length > 0) yield* kind.steps(plan, view, base.offered(view, wanted));
      },
      isLastResult: (view) => base.isLastResult?.(view) === true && plans.of(view).patches.length === 0,
      offered: (view, wanted) => kind.offered(plans.of(view), view, base.offered(view, wanted)),
      provenance(view, name) {
        const resource = base.offered(view, EVERYTHING).resources.get(name) ?? { name };
        const patches = kind.behind(plans.of(view), view, resource).map(objectOf);
        return [...new Set([...base.provenance(view, name), ...patches])];
      },
    },
  };
}

const EVERYTHING: Wanted = { wildcard: true, names: { id: -1, names: new Set() } };

/** Key of the EnvoyFilter that a patch belongs to. */
export const objectOf = (patch: string): string => patch.slice(0, patch.lastIndexOf("#"));
