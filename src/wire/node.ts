import { fromBinary } from "@bufbuild/protobuf";
import { type Node, NodeSchema } from "../gen/envoy/config/core/v3/base_pb.js";

export type { Node };

/** Reads a serialized node. Throws on malformed bytes and on metadata nested beyond the library's limit, so a hostile one costs no stack. */
export const readNodeBytes = (bytes: Uint8Array): Node => fromBinary(NodeSchema, bytes);
