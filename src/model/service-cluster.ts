/** What naming reads of node metadata. */
export interface NamedWorkload {
  readonly LABELS?: unknown;
  readonly WORKLOAD_NAME?: unknown;
  readonly NAMESPACE?: unknown;
}

/** How a ProxyConfig names its workload. */
export interface NamingRules {
  readonly serviceCluster: string;
  readonly tracingServiceName: string;
  /** The name where ProxyConfig has none; may be empty too. */
  readonly otherwise: string;
}

/** The name that ProxyConfig has where nobody gave one. */
const UNNAMED = "istio-proxy";
const CANONICAL_NAME = ["service.istio.io/canonical-name", "app.kubernetes.io/name", "app"];

/** What a workload is called in traces and in Envoy's own words: the name of a ProxyConfig, else the other that is given, else one of its labels with its namespace, by Istio's rules. */
export function serviceCluster(
  { serviceCluster: given, tracingServiceName, otherwise }: NamingRules,
  { LABELS, WORKLOAD_NAME, NAMESPACE }: NamedWorkload,
): string {
  const labels = Object(LABELS) as Readonly<Record<string, unknown>>;
  const labelled = (names: readonly string[]): string | undefined =>
    names.map((name) => labels[name]).find((value) => typeof value === "string");
  const workload = typeof WORKLOAD_NAME === "string" && WORKLOAD_NAME !== "" ? WORKLOAD_NAME : UNNAMED;
  const named = [given, otherwise].find((name) => name !== "" && name !== UNNAMED);
  if (named !== undefined) return named;
  const canonical = labelled(CANONICAL_NAME) ?? workload;
  if (tracingServiceName === "CANONICAL_NAME_ONLY" && canonical !== UNNAMED) return canonical;
  if (tracingServiceName === "CANONICAL_NAME_AND_NAMESPACE") return `${canonical}.${NAMESPACE}`;
  return `${labelled(CANONICAL_NAME.toReversed()) ?? workload}.${NAMESPACE}`;
}
