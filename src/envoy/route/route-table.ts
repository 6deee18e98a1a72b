import { create } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { RouteConfigurationSchema } from "../../gen/envoy/config/route/v3/route_pb.js";
import { encode } from "../../wire/encode.ts";

/** Domains of a virtual host and their encoding: made once, used by every table that has all of them. */
export interface EncodedDomains {
  readonly names: readonly string[];
  readonly bytes: Uint8Array;
}

/** One virtual host of a table: its encoded body (without domains) and the domains it has in this table. */
export interface TableHost {
  readonly body: Uint8Array;
  readonly domains: EncodedDomains;
}

export interface RouteTableInput {
  readonly name: string;
  readonly hosts: readonly TableHost[];
  /** Domains are compared without the port of the Host header. Off where domains carry ports themselves (explicit HTTP proxies). */
  readonly ignorePort: boolean;
}

const VIRTUAL_HOSTS_TAG = (2 << 3) | WireType.LengthDelimited;
const VIRTUAL_HOST_DOMAINS = 2;
const MAX_DIRECT_RESPONSE_BYTES = 1_048_576;

export function encodeDomains(names: readonly string[]): EncodedDomains {
  const writer = new BinaryWriter();
  for (const name of names) writer.tag(VIRTUAL_HOST_DOMAINS, WireType.LengthDelimited).string(name);
  return { names, bytes: writer.finish() };
}

/**
 * Puts a RouteConfiguration together from virtual hosts that are encoded already: a message is the concatenation of its fields, so a
 * change of one host costs that host's encoding. The pieces are shared by all tables that have the host under the same domains. A domain stands
 * once in a table, or Envoy refuses all of it: the first host that names it keeps it, and a host that has none left is dropped.
 */
export function assembleRouteTable(input: RouteTableInput): readonly Uint8Array[] {
  const head = encode(
    RouteConfigurationSchema,
    create(RouteConfigurationSchema, {
      name: input.name,
      validateClusters: false,
      ignorePortInHostMatching: input.ignorePort,
      maxDirectResponseBodySizeBytes: MAX_DIRECT_RESPONSE_BYTES,
    }),
  );
  return [head, ...withDistinctDomains(input.hosts).map(hostField)];
}

const hostFields = new WeakMap<EncodedDomains, WeakMap<Uint8Array, Uint8Array>>();

/** The whole field `virtual_hosts` of one host, made once for each pair of body and domains. */
function hostField({ body, domains }: TableHost): Uint8Array {
  const ofDomains = hostFields.get(domains) ?? new WeakMap<Uint8Array, Uint8Array>();
  hostFields.set(domains, ofDomains);
  let field = ofDomains.get(body);
  if (field === undefined) {
    const length = body.length + domains.bytes.length;
    field = new Uint8Array(fieldLength(length));
    field[0] = VIRTUAL_HOSTS_TAG;
    const at = writeLength(field, 1, length);
    field.set(body, at);
    field.set(domains.bytes, at + body.length);
    ofDomains.set(body, field);
  }
  return field;
}

function withDistinctDomains(hosts: readonly TableHost[]): readonly TableHost[] {
  const taken = new Set<string>();
  return hosts.flatMap((host) => {
    const { names } = host.domains;
    const free = names.some((name) => taken.has(name)) ? names.filter((name) => !taken.has(name)) : names;
    for (const name of free) taken.add(name);
    if (free === names) return [host];
    return free.length === 0 ? [] : [{ body: host.body, domains: encodeDomains(free) }];
  });
}

/** Bytes of a length-delimited field with a one-byte tag. */
function fieldLength(length: number): number {
  let prefix = 1;
  for (let rest = length; rest > 127; rest >>>= 7) prefix += 1;
  return 1 + prefix + length;
}

function writeLength(bytes: Uint8Array, start: number, length: number): number {
  let at = start;
  let rest = length;
  for (; rest > 127; rest >>>= 7) bytes[at++] = (rest & 127) | 128;
  bytes[at++] = rest;
  return at;
}
