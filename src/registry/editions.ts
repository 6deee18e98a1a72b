import type { Declaration } from "./declaration.ts";

/** One service out of the declarations of a host in a namespace, as some clients see it. */
export interface Edition {
  /** See `ServiceRef`. */
  readonly edition: string | undefined;
  readonly exportTo: readonly string[];
  /** In order of precedence. */
  readonly declarations: readonly Declaration[];
}

/**
 * Who sees what of the declarations of one host in one namespace, given in order of precedence. Where all are exported alike that is one
 * service. Else each client gets what it may see and nothing of the rest: declarations meant for its namespace before those for all, as in
 * Istio. ServiceEntries beside a Kubernetes Service only add endpoints to it, so whoever sees the Service sees all of it.
 */
export function editionsOf(declarations: readonly Declaration[]): readonly Edition[] {
  const [first] = declarations;
  if (first === undefined) return [];
  const exports = new Map(declarations.map((one) => [one, viewersOf(one.source === "Kubernetes" ? first : one)]));
  const alike = new Set([...exports.values()].map((viewers) => viewers.toSorted().join())).size === 1;
  if (alike) return [{ edition: undefined, exportTo: first.exportTo, declarations }];
  const seenBy = (viewer: string): readonly Declaration[] => {
    const meant = declarations.filter((one) => viewer !== EVERYONE && exports.get(one)?.includes(viewer));
    const seen = [...meant, ...declarations.filter((one) => exports.get(one)?.includes(EVERYONE))];
    return seen.includes(first) && first.source === "Kubernetes" ? declarations : seen;
  };
  const open = seenBy(EVERYONE);
  const named = Map.groupBy(new Set([...exports.values()].flat().filter((viewer) => viewer !== EVERYONE)), (viewer) =>
    editionOf(seenBy(viewer)),
  );
  named.delete(editionOf(open));
  return [
    ...(open.length === 0 ? [] : [{ edition: undefined, exportTo: [EVERYONE], declarations: open }]),
    ...[...named].map(([edition, exportTo]) => ({ edition, exportTo, declarations: declarationsIn(edition, declarations) })),
  ];
}

/** The name of the service that these declarations make up. */
export const editionOf = (declarations: readonly Declaration[]): string => declarations.map(({ objectKey }) => objectKey).join();

/** Of all declarations of a host in a namespace, those that make up a service; without an edition those that everybody may see. */
export function declarationsIn(edition: string | undefined, declarations: readonly Declaration[]): readonly Declaration[] {
  if (edition === undefined && declarations.length < 2) return declarations;
  if (edition === undefined) return editionsOf(declarations).find((one) => one.edition === undefined)?.declarations ?? [];
  return edition.split(",").flatMap((key) => declarations.find(({ objectKey }) => objectKey === key) ?? []);
}

const EVERYONE = "*";

/** Namespaces that see a declaration: `*`, or names, with `.` for its own. */
function viewersOf({ exportTo, namespace }: Declaration): readonly string[] {
  if (exportTo.includes(EVERYONE)) return [EVERYONE];
  return [...new Set(exportTo.filter((viewer) => viewer !== "~").map((viewer) => (viewer === namespace ? "." : viewer)))];
}
