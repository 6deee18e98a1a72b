import { BinaryReader, type WireType } from "@bufbuild/protobuf/wire";

const LENGTH_DELIMITED: WireType = 2;

/** Offers each length-delimited field of a message to `read`, and skips what it does not take. Throws on malformed bytes. */
export function eachField(bytes: Uint8Array, read: (field: number, reader: BinaryReader) => boolean): void {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (wireType !== LENGTH_DELIMITED || !read(field, reader)) reader.skip(wireType, field);
  }
}
