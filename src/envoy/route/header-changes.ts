import type { MessageInitShape } from "@bufbuild/protobuf";
import { HeaderValueOption_HeaderAppendAction as Append, type HeaderValueOptionSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
import type { HeaderChanges } from "./route-input.ts";

/** `set` overwrites, `add` appends. */
export function headerAdditions(changes: HeaderChanges): MessageInitShape<typeof HeaderValueOptionSchema>[] {
  return changes.add.map(({ name, value, append }) => ({
    header: { key: name, value },
    appendAction: append ? Append.APPEND_IF_EXISTS_OR_ADD : Append.OVERWRITE_IF_EXISTS_OR_ADD,
  }));
}
