/** Where a workload runs. Empty strings mean "not known". */
export interface Locality {
  readonly region: string;
  readonly zone: string;
  readonly subzone: string;
}

/** Nobody knows where. */
export const NO_LOCALITY: Locality = Object.freeze({ region: "", zone: "", subzone: "" });

/** Reads `region/zone/subzone`, the form used by the `istio-locality` label and by locality settings. */
export function parseLocality(text: string): Locality {
  const [region = "", zone = "", subzone = ""] = text.split("/");
  return region === "" ? NO_LOCALITY : { region, zone, subzone };
}

/** `region/zone/subzone`, without what is not known at the end. */
export const formatLocality = (locality: Locality): string =>
  [locality.region, locality.zone, locality.subzone].join("/").replace(/\/+$/, "");
