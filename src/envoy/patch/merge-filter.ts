import type { Message, Registry } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import type { TransportSocket } from "../../gen/envoy/config/core/v3/base_pb.js";
import { mergeAny } from "./merge-any.ts";
import { PatchRefusal } from "./patch.ts";

/** Filters of all kinds: a name and a configuration of any type. */
interface NamedFilter extends Message {
  name: string;
  configType: { case: "typedConfig"; value: Any } | { case: "configDiscovery"; value: Message } | { case: undefined; value?: undefined };
}

/** What a patch of a filter is merged with. */
export interface FilterMerge<F extends NamedFilter> {
  readonly target: F;
  readonly patch: F;
  readonly registry: Registry;
}

/**
 * Merges into a filter as Istio does: its typed configuration field by field, and the name that the patch gives. Other fields of the patch
 * (`disabled`, `config_discovery`) have no effect, see `idleFields`.
 */
export function mergeFilter<F extends NamedFilter>({ target, patch, registry }: FilterMerge<F>): boolean {
  if (target.configType.case !== "typedConfig") throw new PatchRefusal(`filter ${target.name} has no configuration to merge into`);
  if (patch.configType.case === "typedConfig")
    target.configType.value = mergeAny(target.configType.value, patch.configType.value, registry);
  if (patch.name !== "") target.name = patch.name;
  return true;
}

/** Merges a transport socket into one of the same name, field by field; false for another, which has to take its place. */
export function mergeSocket(target: TransportSocket | undefined, patch: TransportSocket, registry: Registry): boolean {
  if (target?.name !== patch.name) return false;
  const [present, given] = [target.configType, patch.configType];
  if (present.case === "typedConfig" && given.case === "typedConfig") present.value = mergeAny(present.value, given.value, registry);
  return true;
}
