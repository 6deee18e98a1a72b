import { BinaryReader, type WireType } from "@bufbuild/protobuf/wire";

const LENGTH_DELIMITED: WireType = 2;

/** Offers each length-delimited field of a message to `read`, and skips what it does not take. Throws on malformed bytes. */
export function eachField(bytes: Uint8Array, read: (field: number, reader: BinaryReader) => boolean): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    // Not `reader.tag()`: a pair for each of a thousand names is what most of the garbage of a request would be.
    const tag = reader.uint32();
    const field = tag >>> 3;
    const wireType: WireType = tag & 7;
    if (field === 0) throw new RangeError("a field has no number");
    if (wireType !== LENGTH_DELIMITED || !read(field, reader)) reader.skip(wireType, field);
  }
}
