import type { Service } from "../model/service.ts";

/** The annotation of Services, ServiceEntries and Namespaces that says which endpoints clients prefer. */
export const DISTRIBUTION_ANNOTATION = "networking.istio.io/traffic-distribution";

const DISTRIBUTION: ReadonlyMap<string, Service["trafficDistribution"]> = new Map([
  ["preferclose", "preferClose"],
  ["prefersamezone", "preferClose"],
  ["prefersamenode", "preferSameNode"],
]);

/** Who may say which endpoints clients prefer. */
export interface DistributionWishes {
  /** `spec.trafficDistribution` of a Service. */
  readonly field?: string | undefined;
  /** Annotations of the object itself. */
  readonly annotations: Readonly<Record<string, string>>;
  /** What the annotation of its namespace says. */
  readonly namespace: string;
}

/**
 * Which endpoints clients prefer. The field of a Service counts first, then its annotation, then that of its namespace, as in Istio; an annotation
 * with a word nobody knows means any, and so lifts what the namespace says.
 */
export function trafficDistributionOf({ field = "", annotations, namespace }: DistributionWishes): Service["trafficDistribution"] {
  const annotation = annotations[DISTRIBUTION_ANNOTATION] || namespace;
  return DISTRIBUTION.get(field.toLowerCase()) ?? DISTRIBUTION.get(annotation.toLowerCase()) ?? "any";
}
