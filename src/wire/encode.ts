import { create, type DescMessage, type JsonObject, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { type Any, AnySchema } from "@bufbuild/protobuf/wkt";
import { contentHash } from "../base/hash.ts";
import { TypedStructSchema } from "../gen/xds/type/v3/typed_struct_pb.js";
import type { Encoded } from "./encoded.ts";
import { withSortedMaps } from "./sorted-maps.ts";
import { typeUrlOf } from "./type-urls.ts";

/** Serializes a message so that equal messages give equal bytes: fields go by number, map entries by key (the library writes them as inserted). */
export function encode<S extends DescMessage>(schema: S, message: MessageShape<S>): Uint8Array {
  return toBinary(schema, withSortedMaps(schema, message));
}

/** Packs a message into an `Any`, deterministically. */
export function anyOf<S extends DescMessage>(schema: S, message: MessageShape<S>): Any {
  return create(AnySchema, { typeUrl: typeUrlOf(schema), value: encode(schema, message) });
}

/** An extension we have no descriptor for, given as JSON under the type Envoy knows it by: Envoy converts it. */
export function typedStruct(typeUrl: string, value: JsonObject): Any {
  return anyOf(TypedStructSchema, create(TypedStructSchema, { typeUrl, value }));
}

/**
 * Makes the resource that is sent: bytes and a version that is their hash. Not interned here: the queries that make resources compare by
 * version (`sameEncoded`) and keep the old object, so there is one per content already, without a table that has to be swept.
 */
export function encoded<S extends DescMessage>(typeUrl: string, name: string, schema: S, message: MessageShape<S>): Encoded {
  return encodedBytes(typeUrl, name, encode(schema, message));
}

/** The same for a body put together from encoded parts: a protobuf message is the concatenation of its fields. */
export function encodedBytes(typeUrl: string, name: string, body: Uint8Array): Encoded {
  return { typeUrl, name, version: contentHash(body), body };
}

/** Equal content. Meant as `same` of queries that yield resources, so that a change stops where the bytes are as before. */
export const sameEncoded = (a: Encoded, b: Encoded): boolean =>
  a === b || (a.version === b.version && a.name === b.name && a.typeUrl === b.typeUrl);
