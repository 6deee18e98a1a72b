import { ListTexts } from "./list-texts.ts";
import { protoFields } from "./proto-fields.ts";
import { ProtoBytes, readProtoObject } from "./proto-object.ts";

/** What every answer in protobuf begins with; an envelope follows. */
export const MAGIC: Buffer = Buffer.from("k8s\0");
/** Tag in the envelope: the bytes of what it holds. */
export const RAW: number = (2 << 3) | 2;

const STATUS_FIELDS = protoFields({ message: { at: 3 }, reason: { at: 4 }, code: { at: 6, is: "int" } });

/** Whether an answer is in protobuf. */
export const isProtobuf = (contentType: string | undefined): boolean =>
  contentType?.startsWith("application/vnd.kubernetes.protobuf") === true;

/** What a `Status` in protobuf says; undefined where it is none. */
export function protoStatus(bytes: Buffer): unknown {
  let status: unknown;
  try {
    const from = new ProtoBytes(bytes, new ListTexts());
    from.at = MAGIC.length;
    while (from.at < bytes.length) {
      const tag = from.short();
      if (tag !== RAW) from.skip(tag, bytes.length);
      else status = readProtoObject(from, from.end(bytes.length), STATUS_FIELDS);
    }
    return status;
  } catch {
    return undefined;
  }
}
