import type { Locality } from "../../model/locality.ts";

/** Whether a pattern such as `us`, `us/*` or `us/west/a` takes a locality. What a pattern leaves out is not looked at. */
export function matchesLocality(pattern: string, { region, zone, subzone }: Locality): boolean {
  const parts = [region, zone, subzone];
  for (const [index, wanted] of pattern.split("/").entries()) {
    if (wanted === "*" || wanted === "") return true;
    if (parts[index] !== wanted) return false;
  }
  return true;
}
