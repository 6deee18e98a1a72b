import type { DescMessage, JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import { contentHash } from "../base/hash.ts";
import { TypedStructSchema } from "../gen/xds/type/v3/typed_struct_pb.js";
import type { Encoded } from "./encoded.ts";
import { messageBytes, withBytes } from "./message-encoder.ts";
import { typeUrlOf } from "./type-urls.ts";

/** Serializes a message so that equal messages give equal bytes: fields go by number, map entries by key (the library writes them as inserted). */
export function encode<S extends DescMessage>(schema: S, message: MessageInitShape<S>): Uint8Array {
  return messageBytes(schema, message);
}

/** Packs a message into an `Any`, deterministically. */
export function anyOf<S extends DescMessage>(schema: S, message: MessageInitShape<S>): Any {
  return { $typeName: "google.protobuf.Any", typeUrl: typeUrlOf(schema), value: encode(schema, message) };
}

/** A message that stands in many others, encoded now and never again. */
export function encodedOnce<S extends DescMessage, M extends MessageInitShape<S>>(schema: S, message: M): M {
  return withBytes(message, encode(schema, message));
}

/** An extension we have no descriptor for, given as JSON under the type Envoy knows it by: Envoy converts it. */
export function typedStruct(typeUrl: string, value: JsonObject): Any {
  return anyOf(TypedStructSchema, { typeUrl, value });
}

/** What a resource is called on the wire. */
export type ResourceName = Pick<Encoded, "typeUrl" | "name">;

/**
 * Makes the resource that is sent: bytes and a version that is their hash. Not interned here: the queries that make resources compare by
 * version (`sameEncoded`) and keep the old object, so there is one per content already, without a table that has to be swept.
 */
export function encoded<S extends DescMessage>({ typeUrl, name }: ResourceName, schema: S, message: MessageInitShape<S>): Encoded {
  return encodedBytes(typeUrl, name, encode(schema, message));
}

/** The same for a body put together from encoded parts: a protobuf message is the concatenation of its fields. */
export function encodedBytes(typeUrl: string, name: string, body: Uint8Array): Encoded {
  return { typeUrl, name, version: contentHash(body), body };
}

/**
 * The same for a large body of which most is shared: what it holds are references. Fifty namespaces that each see a thousand hosts have fifty
 * tables of nearly the same 800 KB, and keep them once. Who makes it cuts equal bodies alike, or they get different versions.
 */
export function encodedPieces(typeUrl: string, name: string, pieces: readonly Uint8Array[]): Encoded {
  return new PiecedResource({ typeUrl, name, version: contentHash(pieces.map(hashOf).join("")) }, pieces);
}

const hashes = new WeakMap<Uint8Array, string>();

/** Worked out once for a piece, however many bodies it is part of: so the version of a body costs its number of pieces, not its size. */
function hashOf(piece: Uint8Array): string {
  const known = hashes.get(piece) ?? contentHash(piece);
  hashes.set(piece, known);
  return known;
}

class PiecedResource implements Encoded {
  readonly typeUrl: string;
  readonly name: string;
  readonly version: string;
  readonly pieces: readonly Uint8Array[];

  constructor({ typeUrl, name, version }: Pick<Encoded, "typeUrl" | "name" | "version">, pieces: readonly Uint8Array[]) {
    this.typeUrl = typeUrl;
    this.name = name;
    this.version = version;
    this.pieces = pieces;
  }

  get body(): Uint8Array {
    return joinInto(new Uint8Array(bytesIn(this.pieces)), this.pieces);
  }
}

const bytesIn = (pieces: readonly Uint8Array[]): number => pieces.reduce((sum, piece) => sum + piece.length, 0);

/** Copies the pieces to the start of the target; gives the part of it that they fill. */
function joinInto(target: Uint8Array, pieces: readonly Uint8Array[]): Uint8Array {
  let at = 0;
  for (const piece of pieces) {
    target.set(piece, at);
    at += piece.length;
  }
  return target.subarray(0, at);
}

/** Equal content. Meant as `same` of queries that yield resources, so that a change stops where the bytes are as before. */
export const sameEncoded = (a: Encoded, b: Encoded): boolean =>
  a === b || (a.version === b.version && a.name === b.name && a.typeUrl === b.typeUrl);
