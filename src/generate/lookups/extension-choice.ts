import { type Labels, matchesLabels } from "../../base/labels.ts";
import { objectKey } from "../../config/object.ts";
import type { Query } from "../../engine/index.ts";
import type { GenerateContext } from "../context.ts";
import type { ExtensionObject } from "../extensions/extension-rule.ts";
import { isTargeted } from "./policy-target.ts";
import { byPrecedence } from "./precedence.ts";

export interface ExtensionQuery {
  readonly namespace: string;
  readonly labels: Labels;
}

const KINDS = ["TrafficExtension", "WasmPlugin"] as const;

/**
 * Keys of the WasmPlugins and TrafficExtensions that apply to a workload: those of its namespace, then those of the root namespace, the
 * oldest first, as far as their selector or target takes it (Istio's reference of the two kinds). Where there are none, labels do not count.
 */
export function defineExtensionChoice(ctx: Pick<GenerateContext, "engine" | "inputs">): (query: ExtensionQuery) => readonly string[] {
  const inNamespace = ctx.engine.query<string, readonly ExtensionObject[]>({
    name: "extensionsIn",
    compute: (namespace) =>
      KINDS.flatMap((kind) => ctx.inputs.objects.list("kindNamespace", `${kind}/${namespace}`) as readonly ExtensionObject[]).sort(
        byPrecedence,
      ),
  });
  const rootNamespace = (): string => ctx.inputs.mesh.get("mesh")?.rootNamespace ?? "istio-system";
  const candidates = (namespace: string): readonly ExtensionObject[] => {
    const root = rootNamespace();
    return [namespace, ...(namespace === root ? [] : [root])].flatMap((one) => inNamespace(one));
  };
  const exist = ctx.engine.query<string, boolean>({ name: "hasExtensions", compute: (namespace) => candidates(namespace).length > 0 });
  const chosen: Query<ExtensionQuery, readonly string[]> = ctx.engine.query<ExtensionQuery, readonly string[]>({
    name: "extensionsFor",
    id: ({ namespace, labels }) => `${namespace}|${JSON.stringify(labels)}`,
    compute: (query) =>
      candidates(query.namespace)
        .filter((object) => appliesTo(object, query, rootNamespace()))
        .map(objectKey),
  });
  return ({ namespace, labels }) => (exist(namespace) ? chosen({ namespace, labels }) : []);
}

function appliesTo({ namespace, spec }: ExtensionObject, workload: ExtensionQuery, rootNamespace: string): boolean {
  const targets = "targetRef" in spec && spec.targetRef !== undefined ? [spec.targetRef, ...spec.targetRefs] : spec.targetRefs;
  if (targets.length > 0) return isTargeted(targets, { policyNamespace: namespace, rootNamespace, workload });
  return matchesLabels(spec.selector?.matchLabels ?? {}, workload.labels);
}
