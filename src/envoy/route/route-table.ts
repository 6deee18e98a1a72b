import { create } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { RouteConfigurationSchema } from "../../gen/envoy/config/route/v3/route_pb.js";
import { encode } from "../../wire/encode.ts";

/** One virtual host of a table: its encoded body (without domains) and the domains it has in this table. */
export interface TableHost {
  readonly body: Uint8Array;
  readonly domains: readonly string[];
}

export interface RouteTableInput {
  readonly name: string;
  readonly hosts: readonly TableHost[];
  /** Domains are compared without the port of the Host header. Off where domains carry ports themselves (explicit HTTP proxies). */
  readonly ignorePort: boolean;
}

const VIRTUAL_HOSTS = 2;
const VIRTUAL_HOST_DOMAINS = 2;
const MAX_DIRECT_RESPONSE_BYTES = 1_048_576;

/**
 * Puts a RouteConfiguration together from virtual hosts that are encoded already: a message is the concatenation of its fields, so a
 * change of one host costs that host's encoding and a copy. A domain stands once in a table, or Envoy refuses all of it: the first
 * host that names it keeps it, and a host that has none left is dropped.
 */
export function assembleRouteTable(input: RouteTableInput): Uint8Array {
  const head = encode(
    RouteConfigurationSchema,
    create(RouteConfigurationSchema, {
      name: input.name,
      validateClusters: false,
      ignorePortInHostMatching: input.ignorePort,
      maxDirectResponseBodySizeBytes: MAX_DIRECT_RESPONSE_BYTES,
    }),
  );
  const taken = new Set<string>();
  const writer = new BinaryWriter().raw(head);
  for (const host of input.hosts) {
    const domains = host.domains.filter((domain) => !taken.has(domain.toLowerCase()));
    if (domains.length === 0) continue;
    for (const domain of domains) taken.add(domain.toLowerCase());
    writer.tag(VIRTUAL_HOSTS, WireType.LengthDelimited).fork().raw(host.body);
    for (const domain of domains) writer.tag(VIRTUAL_HOST_DOMAINS, WireType.LengthDelimited).string(domain);
    writer.join();
  }
  return writer.finish();
}
