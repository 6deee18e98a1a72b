import { create, type DescMessage, fromBinary, type JsonObject, type JsonValue, type Message, type Registry } from "@bufbuild/protobuf";
import { type Any, AnySchema } from "@bufbuild/protobuf/wkt";
import { TypedStructSchema } from "../../gen/xds/type/v3/typed_struct_pb.js";
import { anyOf, encode } from "../../wire/encode.ts";
import { mergeInto } from "./merge.ts";
import { PatchRefusal } from "./patch.ts";

/** Name of the message type in an `Any`. */
export const typeNameOf = ({ typeUrl }: Pick<Any, "typeUrl">): string => typeUrl.slice(typeUrl.lastIndexOf("/") + 1);

/**
 * Merges the contents of two `Any`s of one type. Contents of different types cannot be merged: Istio writes the one's bytes under the other's
 * name then, which Envoy refuses or, worse, reads as something else.
 */
export function mergeAny(target: Any, patch: Any, registry: Registry): Any {
  const [type, given] = [contentType(target), contentType(patch)];
  if (type !== given) throw new PatchRefusal(`the configuration is a ${type}, the patch is a ${given}`);
  if (isTypedStruct(target) || isTypedStruct(patch)) return mergeStructs(target, patch);
  const schema = registry.getMessage(type);
  if (schema === undefined) throw new PatchRefusal(`${type} is not known well enough to be merged; REPLACE takes it`);
  const message = contentOf(schema, target);
  mergeInto({ schema }, message, contentOf(schema, patch));
  return create(AnySchema, { typeUrl: target.typeUrl, value: encode(schema, message) });
}

/** The message in an `Any`, freshly read, so that it may be modified. */
export const contentOf = (schema: DescMessage, any: Any): Message => fromBinary(schema, any.value);

export const isTypedStruct = (any: Any): boolean => typeNameOf(any) === TypedStructSchema.typeName;

/** The type that Envoy will find inside: that of the message, or the one a TypedStruct stands for. */
function contentType(any: Any): string {
  return isTypedStruct(any) ? typeNameOf(fromBinary(TypedStructSchema, any.value)) : typeNameOf(any);
}

/** Contents known as JSON only are merged as JSON, by the same rules. */
function mergeStructs(target: Any, patch: Any): Any {
  if (!isTypedStruct(target) || !isTypedStruct(patch))
    throw new PatchRefusal("one is typed, the other is JSON that cannot be typed; REPLACE takes it");
  const into = fromBinary(TypedStructSchema, target.value);
  const value = mergeJson(into.value ?? {}, fromBinary(TypedStructSchema, patch.value).value ?? {});
  return anyOf(TypedStructSchema, create(TypedStructSchema, { typeUrl: into.typeUrl, value }));
}

function mergeJson(target: JsonObject, patch: JsonObject): JsonObject {
  const entries = Object.entries(patch).map(([key, value]): [string, JsonValue] => {
    const present = target[key];
    if (Array.isArray(present) && Array.isArray(value)) return [key, [...present, ...value]];
    return [key, isObject(present) && isObject(value) ? mergeJson(present, value) : value];
  });
  return { ...target, ...Object.fromEntries(entries) };
}

const isObject = (json: JsonValue | undefined): json is JsonObject => typeof json === "object" && json !== null && !Array.isArray(json);
