import type { DescMessage, Message, MessageShape } from "@bufbuild/protobuf";
import type { Patch } from "../../envoy/patch/patch.ts";
import { encoded } from "../../wire/encode.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import type { KindRules, Scene } from "./patched-kind.ts";
import { PATCHED_TYPES } from "./patched-types.ts";

/** A whole resource that a patch adds, or would if nothing were in the way. */
export interface AddedResource {
  readonly patch: string;
  readonly resource: Encoded;
  readonly fault: string | undefined;
}

const made = new WeakMap<Message, Encoded>();

/** The resources that patches add to a set, in order. One that is in the way of what is there already is left out. */
export function addResources(scene: Scene, rules: KindRules, present: ResourceSet["resources"]): readonly AddedResource[] {
  const adding = scene.patches.filter((patch) => patch.operation === "ADD" && scene.adds(patch));
  if (adding.length === 0) return [];
  const all = new Map(present);
  const each = adding.flatMap((patch) =>
    (rules.added?.(patch, present) ?? plainlyAdded(patch, rules.typeUrl)).map((resource) => ({ patch, resource })),
  );
  return each.map(({ patch, resource }) => {
    const fault = all.has(resource.name) ? `there is a resource named ${resource.name} already` : rules.clash(resource, all);
    if (fault === undefined) all.set(resource.name, resource);
    return { patch: patch.id, resource, fault };
  });
}

/** Name of the resource a patch adds. */
export const nameOf = ({ value }: Patch): string | undefined =>
  value !== undefined && "name" in value && typeof value.name === "string" ? value.name : undefined;

/** The content of a patch as a resource: encoded once, like any other. */
function plainlyAdded(patch: Patch, typeUrl: string): readonly Encoded[] {
  const { applyTo, value } = patch;
  const name = nameOf(patch);
  if (value === undefined || name === undefined) return [];
  const schema: DescMessage = PATCHED_TYPES[applyTo].schema;
  const resource = made.get(value) ?? encoded({ typeUrl, name }, schema, value as MessageShape<typeof schema>);
  made.set(value, resource);
  return [resource];
}
