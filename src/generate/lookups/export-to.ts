/** Whether something of `owner`'s namespace is visible in `viewer`'s. An empty list falls back to the mesh's default, which the caller passes. */
export function isExported(
  exportTo: readonly string[],
  fallback: readonly string[],
  namespaces: { readonly owner: string; readonly viewer: string },
): boolean {
  const list = exportTo.length > 0 ? exportTo : fallback.length > 0 ? fallback : ["*"];
  return list.some((entry) => entry === "*" || entry === namespaces.viewer || (entry === "." && namespaces.owner === namespaces.viewer));
}

/** How widely something is exported: the order in which Istio considers rules for a client (own, to this namespace, to all). */
export function exportRank(
  exportTo: readonly string[],
  fallback: readonly string[],
  namespaces: { readonly owner: string; readonly viewer: string },
): number {
  const list = exportTo.length > 0 ? exportTo : fallback.length > 0 ? fallback : ["*"];
  if (list.includes("*")) return 2;
  return namespaces.owner === namespaces.viewer && list.includes(".") ? 0 : 1;
}
