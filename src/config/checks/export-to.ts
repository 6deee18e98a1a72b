import { quote } from "../../base/quote.ts";
import { isDnsLabel } from "./host-name.ts";
import type { Place } from "./place.ts";

/** What decides how far an object may be exported. */
export interface ExportScope {
  readonly namespace: string;
  /** Only a ServiceEntry may be exported to nobody (`~`). */
  readonly isServiceEntry?: boolean;
  /** A DestinationRule with a workload selector concerns its own namespace only. */
  readonly isSelected?: boolean;
}

/** Namespaces that see an object: `.` (its own), `*` (all), `~` (none) or names. */
export function checkExportTo(exportTo: readonly string[], scope: ExportScope, place: Place): void {
  const seen = new Set<string>();
  for (const [index, entry] of exportTo.entries()) {
    const at = place.in(index);
    const namespace = entry === "." ? scope.namespace : entry;
    if (seen.has(namespace)) at.fault("field.duplicate", `${quote(entry)} is listed twice`);
    seen.add(namespace);
    if (entry === "~" && scope.isServiceEntry === true) continue;
    if (namespace !== "*" && !isDnsLabel(namespace)) at.fault("field.invalid", `${quote(entry)} is neither ".", "*" nor a namespace`);
  }
  if (seen.has("*") && seen.size > 1) place.fault("field.conflict", '"*" exports to every namespace; no other may be listed beside it');
  if (seen.has("~") && scope.isServiceEntry === true && seen.size > 1)
    place.fault("field.conflict", '"~" exports to nobody; no other may be listed beside it');
  if (scope.isSelected !== true || exportTo.length === 0) return;
  if (exportTo.length > 1) place.fault("field.conflict", "with a workload selector only one namespace may be listed");
  else if (!seen.has(scope.namespace))
    place.fault("field.conflict", "with a workload selector only the object's own namespace may be listed");
}
