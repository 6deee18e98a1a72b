import { BinaryReader, type WireType } from "@bufbuild/protobuf/wire";
import { bytesField } from "./field-writer.ts";

const LENGTH_DELIMITED: WireType = 2;

/**
 * Changes length-delimited fields of a message and leaves the rest as it is, byte for byte: what `change` gives for a field is its new content,
 * undefined takes it out. Throws on malformed bytes.
 */
export function rewriteFields(bytes: Uint8Array, change: (field: number, content: Uint8Array) => Uint8Array | undefined): Buffer {
  const reader = new BinaryReader(bytes);
  const parts: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [field, wireType] = reader.tag();
    if (wireType !== LENGTH_DELIMITED) {
      reader.skip(wireType, field);
      parts.push(bytes.subarray(start, reader.pos));
      continue;
    }
    const content = reader.bytes();
    const changed = change(field, content);
    if (changed !== undefined) parts.push(changed === content ? bytes.subarray(start, reader.pos) : bytesField(field, changed));
  }
  return Buffer.concat(parts);
}
