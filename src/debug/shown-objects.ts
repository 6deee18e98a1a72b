import type { ConfigObject } from "../config/object.ts";
import type { DestinationRule } from "../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { VirtualService } from "../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { isExported } from "../generate/lookups/export-to.ts";
import type { DebugDeps } from "./debug-deps.ts";

/**
 * Which objects somebody of a namespace may be told of, by key: its own, those of the root namespace, which are for everybody, and of others the services
 * and rules that they export to it. What a resource was made from is more: to see that something is not for a namespace, it had to be read.
 */
export function shownObjects({ world: { context }, mesh }: Pick<DebugDeps, "world" | "mesh">, viewer: string): (key: string) => boolean {
  const { rootNamespace, defaultVirtualServiceExportTo, defaultDestinationRuleExportTo } = mesh.current.mesh;
  const { services } = context.lookups.scope({ namespace: viewer, sidecar: undefined });
  const declared = new Set(services.values().map((ref) => context.registry.service(ref)?.objectKey));
  const exported = (object: ConfigObject | undefined, fallback: readonly string[]): boolean =>
    object !== undefined &&
    isExported((object.spec as VirtualService | DestinationRule).exportTo, fallback, { owner: object.namespace, viewer });
  return (key) => {
    const [kind, owner] = key.split("/");
    if (owner === viewer || owner === rootNamespace) return true;
    if (kind === "VirtualService") return exported(context.inputs.objects.get(key), defaultVirtualServiceExportTo);
    if (kind === "DestinationRule") return exported(context.inputs.objects.get(key), defaultDestinationRuleExportTo);
    return declared.has(key);
  };
}
