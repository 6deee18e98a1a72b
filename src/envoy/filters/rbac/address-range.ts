import { create } from "@bufbuild/protobuf";
import { canonicalAddress, parseCidr } from "../../../base/address.ts";
import { type CidrRange, CidrRangeSchema } from "../../../gen/envoy/config/core/v3/address_pb.js";

/** `10.0.0.0/8`, or one address. */
export function addressRange(text: string): CidrRange {
  const cidr = parseCidr(text);
  if (cidr === undefined) throw new Error(`not an address range: ${text}`);
  const [address = ""] = text.split("/", 1);
  return create(CidrRangeSchema, { addressPrefix: canonicalAddress(address), prefixLen: cidr.prefix });
}
