/** Where a workload runs. Empty strings mean "not known". */
export interface Locality {
  readonly region: string;
  readonly zone: string;
  readonly subzone: string;
}

/** Nobody knows where. */
export const NO_LOCALITY: Locality = Object.freeze({ region: "", zone: "", subzone: "" });

const KEPT = 1_024;
const known = new Map<string, Locality>();

/** Reads `region/zone/subzone`, the form used by the `istio-locality` label and by locality settings. One object for the endpoints of a place, which are many. */
export function parseLocality(text: string): Locality {
  const before = known.get(text);
  if (before !== undefined) return before;
  const [region = "", zone = "", subzone = ""] = text.split("/");
  const locality = region === "" ? NO_LOCALITY : Object.freeze({ region, zone, subzone });
  if (known.size === KEPT) known.clear();
  known.set(text, locality);
  return locality;
}

/** `region/zone/subzone`, without what is not known at the end. */
export const formatLocality = (locality: Locality): string =>
  [locality.region, locality.zone, locality.subzone].join("/").replace(/\/+$/, "");
