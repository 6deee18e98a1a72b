import { type DescMessage, isFieldSet, type Message } from "@bufbuild/protobuf";
import { type ApplyTo, merges, type Operation } from "../../envoy/patch/patch.ts";

/** A patch as far as it decides which of its fields count. */
export interface MergedValue {
  readonly applyTo: ApplyTo;
  readonly operation: Operation;
  readonly schema: DescMessage;
  readonly message: Message;
}

const FILTERS: ReadonlySet<ApplyTo> = new Set(["LISTENER_FILTER", "NETWORK_FILTER", "HTTP_FILTER"]);

/**
 * Fields that a merging patch sets in vain. Istio merges name and configuration of a filter and nothing else of it, and nothing beside a
 * transport socket; we do the same, so that a configuration means here what it means there, and say so.
 */
export function idleFields({ applyTo, operation, schema, message }: MergedValue): readonly string[] {
  if (!merges({ operation })) return [];
  const set = schema.fields.filter((field) => isFieldSet(message, field)).map(({ name }) => name);
  const others = (counted: readonly string[], why: string): readonly string[] =>
    set.filter((name) => !counted.includes(name)).map((name) => `${name}: ${why}`);
  if (FILTERS.has(applyTo)) return others(["name", "typed_config"], "is not merged, only name and typed_config of a filter are");
  if (!set.includes("transport_socket")) return [];
  if (applyTo === "CLUSTER") return others(["transport_socket"], "is not merged beside transport_socket; a patch of its own is");
  if (applyTo === "FILTER_CHAIN")
    return others(["transport_socket"], "is not merged into chains with a transport_socket of that name; a patch of its own is");
  return [];
}
