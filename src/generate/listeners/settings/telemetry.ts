import { matchesLabels } from "../../../base/labels.ts";
import { type ConfigObject, objectKey } from "../../../config/object.ts";
import type { Engine, Query } from "../../../engine/index.ts";
import { type Telemetry, WorkloadMode } from "../../../gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import type { GenerateContext } from "../../context.ts";
import { isTargeted } from "../../lookups/policy-target.ts";
import { byPrecedence } from "../../lookups/precedence.ts";
import type { Side } from "../traits.ts";

type Context = Pick<GenerateContext, "engine" | "inputs">;

export interface WorkloadQuery {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}

const defined = new WeakMap<Engine, Query<WorkloadQuery, readonly string[]>>();

/** The choice of an engine; defined on first use, since listeners and those who look inside ask for it alike. */
export function telemetryChoiceOf(ctx: Context): Query<WorkloadQuery, readonly string[]> {
  const known = defined.get(ctx.engine) ?? defineTelemetryChoice(ctx);
  defined.set(ctx.engine, known);
  return known;
}

/**
 * The Telemetry objects that apply to a workload, by Istio's "Scope, Inheritance, and Overrides": the root namespace's, then the
 * namespace's (the oldest of each counts), then those that select the workload or name the Gateway it stands for.
 */
function defineTelemetryChoice(ctx: Context): Query<WorkloadQuery, readonly string[]> {
  const inNamespace = ctx.engine.query<string, readonly ConfigObject<Telemetry>[]>({
    name: "telemetryIn",
    compute: (namespace) =>
      [...(ctx.inputs.objects.list("kindNamespace", `Telemetry/${namespace}`) as readonly ConfigObject<Telemetry>[])].sort(byPrecedence),
  });
  const general = (namespace: string) => inNamespace(namespace).find(({ spec }) => !isSelective(spec));
  return ctx.engine.query<WorkloadQuery, readonly string[]>({
    name: "telemetryFor",
    id: ({ namespace, labels }) => `${namespace}|${JSON.stringify(labels)}`,
    compute: (workload) => {
      const { namespace } = workload;
      const root = ctx.inputs.mesh.get("mesh")?.rootNamespace ?? "istio-system";
      const selecting = [...new Set([root, namespace])].flatMap(inNamespace).filter((object) => selects(object, workload, root));
      const levels = [general(root), namespace === root ? undefined : general(namespace), ...selecting];
      return levels.filter((object) => object !== undefined).map(objectKey);
    },
  });
}

/** Objects bound to a resource by name are not for workloads at large. */
const isSelective = (spec: Telemetry): boolean =>
  Object.keys(spec.selector?.matchLabels ?? {}).length > 0 || spec.targetRef !== undefined || spec.targetRefs.length > 0;

/** Whether an object is for this workload and others like it: by its targets, or by its selector, which means workloads of its namespace. */
function selects({ namespace, spec }: ConfigObject<Telemetry>, workload: WorkloadQuery, rootNamespace: string): boolean {
  const { selector, targetRef, targetRefs } = spec;
  const targets = targetRef === undefined ? targetRefs : [targetRef, ...targetRefs];
  if (targets.length > 0) return isTargeted(targets, { policyNamespace: namespace, rootNamespace, workload });
  return isSelective(spec) && namespace === workload.namespace && matchesLabels(selector?.matchLabels ?? {}, workload.labels);
}

/** Whether a rule for a workload mode applies on a side; a gateway is a client of what is behind it. */
export function appliesTo(mode: WorkloadMode | undefined, side: Side): boolean {
  if (mode === undefined || mode === WorkloadMode.CLIENT_AND_SERVER) return true;
  return mode === (side === "server" ? WorkloadMode.SERVER : WorkloadMode.CLIENT);
}
