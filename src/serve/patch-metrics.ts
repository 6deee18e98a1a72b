import type { PatchReport } from "../generate/patches/report.ts";

/** Samples of `pilot_envoy_filter_status`: of each EnvoyFilter and each sort of patch in it, whether it does something and whether it is at fault. */
export interface PatchStatus {
  readonly name: string;
  readonly patch: string;
  readonly result: "applied" | "error";
  readonly value: 0 | 1;
}

/** What Istio calls the sorts of patches in the metric, where that is not their name in lower case. */
const NAMES: Readonly<Record<string, string>> = { VIRTUAL_HOST: "vhost", HTTP_ROUTE: "route" };

const nameOf = (applyTo: string): string => NAMES[applyTo] ?? applyTo.replaceAll("_", "").toLowerCase();

/** The metric out of a report on all patches. */
export function patchStatus(reports: readonly PatchReport[]): readonly PatchStatus[] {
  const groups = Map.groupBy(reports, ({ object, applyTo }) => `${object.slice(object.indexOf("/") + 1)} ${nameOf(applyTo)}`);
  return [...groups].flatMap(([key, group]): readonly PatchStatus[] => {
    const [name = "", patch = ""] = key.split(" ");
    const applied = group.some((report) => report.applied > 0);
    const failed = group.some(({ problems }) => problems.length > 0);
    return [
      { name, patch, result: "applied", value: applied ? 1 : 0 },
      { name, patch, result: "error", value: failed ? 1 : 0 },
    ];
  });
}
