import type { Labels } from "../../base/labels.ts";
import type { ProxyView } from "../../model/proxy.ts";
import type { ServiceRef } from "../../model/service.ts";
import { type GenerateContext, type ResolvedDestinationRule, type ScopeKey, scopeId } from "../context.ts";

/** What decides which services and rules a client sees. */
export interface ClientClass extends ScopeKey {
  /** Labels of the workload; undefined where no rule of its namespace selects workloads, so that all workloads there are one class. */
  readonly labels: Labels | undefined;
}

export const clientClassId = (key: ClientClass): string => `${scopeId(key)}|${key.labels === undefined ? "" : JSON.stringify(key.labels)}`;

/** The class of a proxy. */
export function clientClassOf({ lookups }: Pick<GenerateContext, "lookups">, view: ProxyView): ClientClass {
  const { namespace, sidecar } = view;
  return { namespace, sidecar, labels: lookups.hasSelectiveDestinationRules(namespace) ? view.labels : undefined };
}

/** The DestinationRule clients of a class use for a service. Where no namespace that counts has any, nothing is looked up or remembered. */
export function ruleFor(
  { lookups, inputs }: Pick<GenerateContext, "lookups" | "inputs">,
  client: ClientClass,
  service: ServiceRef,
): ResolvedDestinationRule | undefined {
  const hasRules = (namespace: string): boolean => inputs.objects.keys("kindNamespace", `DestinationRule/${namespace}`).length > 0;
  const root = inputs.mesh.get("mesh")?.rootNamespace || "istio-system";
  if (!hasRules(client.namespace) && !hasRules(service.namespace) && !hasRules(root)) return undefined;
  return lookups.destinationRule({
    host: service.host,
    clientNamespace: client.namespace,
    serviceNamespace: service.namespace,
    labels: client.labels,
  });
}
