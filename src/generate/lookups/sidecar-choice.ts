import { matchesLabels } from "../../base/labels.ts";
import type { ConfigObject } from "../../config/object.ts";
import { objectKey } from "../../config/object.ts";
import type { Query } from "../../engine/index.ts";
import type { Sidecar } from "../../gen/istio/networking/v1alpha3/sidecar_pb.js";
import type { GenerateContext } from "../context.ts";
import { byPrecedence } from "./precedence.ts";

export interface SidecarQuery {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}

/**
 * The Sidecar that applies to a workload: the oldest of its namespace that selects it, else the namespace's one without a selector,
 * else the root namespace's one without a selector (Istio's reference of the Sidecar kind).
 */
export function defineSidecarChoice(ctx: Pick<GenerateContext, "engine" | "inputs">): Query<SidecarQuery, string | undefined> {
  const inNamespace = ctx.engine.query<string, readonly ConfigObject<Sidecar>[]>({
    name: "sidecarsIn",
    compute: (namespace) =>
      [...(ctx.inputs.objects.list("kindNamespace", `Sidecar/${namespace}`) as readonly ConfigObject<Sidecar>[])].sort(byPrecedence),
  });
  return ctx.engine.query<SidecarQuery, string | undefined>({
    name: "sidecarFor",
    id: ({ namespace, labels }) => `${namespace}|${JSON.stringify(labels)}`,
    compute: ({ namespace, labels }) => {
      const own = inNamespace(namespace);
      const chosen =
        own.find(({ spec }) => spec.workloadSelector !== undefined && matchesLabels(spec.workloadSelector.labels, labels)) ??
        own.find(({ spec }) => spec.workloadSelector === undefined) ??
        inNamespace(ctx.inputs.mesh.get("mesh")?.rootNamespace ?? "istio-system").find(({ spec }) => spec.workloadSelector === undefined);
      return chosen === undefined ? undefined : objectKey(chosen);
    },
  });
}
