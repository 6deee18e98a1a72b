import type { DescMessage, Message, Registry } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { type TransportSocket, TransportSocketSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
import { mergeInto } from "./merge.ts";
import { mergeAny } from "./merge-any.ts";
import { PatchRefusal } from "./patch.ts";

/** Network and HTTP filters: a name and a configuration of any type. */
interface NamedFilter extends Message {
  name: string;
  configType: { case: "typedConfig"; value: Any } | { case: "configDiscovery"; value: Message } | { case: undefined; value?: undefined };
}

/** Merges into a filter: its typed configuration is merged field by field, all else as in any message. */
export function mergeFilter<F extends NamedFilter>(
  schema: DescMessage,
  { target, patch, registry }: { readonly target: F; readonly patch: F; readonly registry: Registry },
): boolean {
  const given = patch.configType;
  if (given.case === "typedConfig") {
    if (target.configType.case !== "typedConfig") throw new PatchRefusal(`filter ${target.name} has no configuration to merge into`);
    target.configType.value = mergeAny(target.configType.value, given.value, registry);
    patch.configType = { case: undefined };
  }
  mergeInto(schema, target, patch);
  return true;
}

/** Merges a transport socket: of the same name field by field into its configuration; another one takes its place. */
export function mergeSocket(target: TransportSocket, patch: TransportSocket, registry: Registry): void {
  const [present, given] = [target.configType, patch.configType];
  if (target.name === patch.name && present.case === "typedConfig" && given.case === "typedConfig")
    present.value = mergeAny(present.value, given.value, registry);
  else mergeInto(TransportSocketSchema, target, patch);
}
