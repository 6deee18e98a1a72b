import type { JsonObject } from "@bufbuild/protobuf";
import { buildManagedBootstrap } from "../envoy/bootstrap/managed-bootstrap.ts";
import { BootstrapSchema } from "../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { encode } from "../wire/encode.ts";
import { bootstrapInput } from "./bootstrap-input.ts";
import { proxyConfigOf } from "./proxy-config.ts";

/** The bootstrap of a proxy whose control plane gives none: what node metadata says over the defaults, without a mesh's own settings. */
export function builtInBootstrap(metadata: JsonObject): Uint8Array {
  const given = metadata.PROXY_CONFIG === undefined ? "" : JSON.stringify(metadata.PROXY_CONFIG);
  return encode(BootstrapSchema, buildManagedBootstrap(bootstrapInput(proxyConfigOf(undefined, given), metadata)));
}
