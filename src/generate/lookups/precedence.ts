import type { ConfigObject } from "../../config/object.ts";

/** Istio's order between objects of one kind: older first, then by name, then by namespace. The earlier one wins a conflict. */
export function byPrecedence(
  a: Pick<ConfigObject, "createdAt" | "name" | "namespace">,
  b: Pick<ConfigObject, "createdAt" | "name" | "namespace">,
): number {
  return a.createdAt - b.createdAt || compareText(a.name, b.name) || compareText(a.namespace, b.namespace);
}

/** Byte-wise order, the same on every machine (localeCompare is not). */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
