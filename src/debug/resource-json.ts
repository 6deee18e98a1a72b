import type { Registry } from "@bufbuild/protobuf";
import { BinaryReader } from "@bufbuild/protobuf/wire";
import { bodySize, type Encoded } from "../wire/encoded.ts";
import { encodedJson } from "../wire/json.ts";
import { redacted } from "../wire/redact.ts";
import { ROUTE_TYPE, VIRTUAL_HOST_TYPE } from "../wire/type-urls.ts";
import type { Json } from "./api-types.ts";

/** From here on a table is read host by host: it may have thousands, and reading it at once would hold up everybody else. */
const LARGE_BYTES = 64 * 1024;
const VIRTUAL_HOSTS = 2;

/** A resource as JSON. */
export interface ResourceJson {
  readonly json: JsonRecord;
  /** Virtual hosts of a large table, which are not in `json`: each is read when it is taken. */
  readonly hosts?: Iterable<JsonRecord>;
}

type JsonRecord = { readonly [key: string]: Json };

/** The JSON of a resource without its secrets. */
export function resourceJson(resource: Encoded, registry: Registry): ResourceJson {
  const read = (typeUrl: string, body: Uint8Array): JsonRecord => redacted(encodedJson(registry, { typeUrl, body })) as JsonRecord;
  if (resource.typeUrl !== ROUTE_TYPE || bodySize(resource) < LARGE_BYTES) return { json: read(resource.typeUrl, resource.body) };
  const { hosts, rest } = withoutHosts(resource.body);
  const withoutType = ({ "@type": _, ...host }: JsonRecord): JsonRecord => host;
  return { json: read(ROUTE_TYPE, rest), hosts: hosts.values().map((body) => withoutType(read(VIRTUAL_HOST_TYPE, body))) };
}

/** A message is the sum of its fields: those that are virtual hosts, and a table of all others. */
function withoutHosts(body: Uint8Array): { readonly hosts: readonly Uint8Array[]; readonly rest: Uint8Array } {
  const reader = new BinaryReader(body);
  const hosts: Uint8Array[] = [];
  const rest: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [field, wireType] = reader.tag();
    if (field === VIRTUAL_HOSTS) hosts.push(reader.bytes());
    else {
      reader.skip(wireType, field);
      rest.push(body.subarray(start, reader.pos));
    }
  }
  return { hosts, rest: Buffer.concat(rest) };
}
