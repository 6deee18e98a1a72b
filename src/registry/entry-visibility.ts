import { type Labels, selectsLabels } from "../base/labels.ts";
import { type ServiceEntryVisibility, ServiceEntryVisibility_Visibility as Visibility } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";

/** How far something may be seen at most. */
export type EntryVisibility = "public" | "namespace" | "none";

/** What MeshConfig `serviceEntryVisibility` says of a namespace: the first policy whose rules all hold counts, else the default. */
export function entryVisibility(settings: ServiceEntryVisibility | undefined, labels: () => Labels): EntryVisibility {
  if (settings?.applyToSidecars !== true) return "public";
  const policy = settings.policies.find(({ matchingRules }) =>
    matchingRules.every(({ matcher }) => matcher.case === "namespaceSelector" && selectsLabels(matcher.value, labels())),
  );
  return VISIBILITY[policy?.visibility ?? settings.defaultVisibility];
}

const VISIBILITY = {
  [Visibility.VISIBILITY_UNSPECIFIED]: "public",
  [Visibility.PUBLIC]: "public",
  [Visibility.NAMESPACE]: "namespace",
  [Visibility.NONE]: "none",
} as const satisfies Record<Visibility, EntryVisibility>;

/** A list of namespaces to export to, narrowed to what may be seen: it never grows. */
export function cappedExport(exportTo: readonly string[], cap: EntryVisibility, namespace: string): readonly string[] {
  if (cap === "public") return exportTo;
  const own = exportTo.some((entry) => entry === "*" || entry === "." || entry === namespace);
  return cap === "namespace" && own ? ["."] : ["~"];
}
