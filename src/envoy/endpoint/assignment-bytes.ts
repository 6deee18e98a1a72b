import { MetadataSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
import { encode } from "../../wire/encode.ts";
import { uint32 } from "../../wire/scalar-writer.ts";
import { TailBuffer } from "../../wire/tail-buffer.ts";
import { type EndpointInput, HEALTH_STATUS, type LoadAssignmentInput, type LocalityInput, MUTUAL_TLS } from "./load-assignment.ts";

const VARINT = 0;
const LENGTH_DELIMITED = 2;
const nested = (field: number): number => (field << 3) | LENGTH_DELIMITED;
const number = (field: number): number => (field << 3) | VARINT;

/** Tags, by message and field. */
const ASSIGNMENT = { clusterName: nested(1), endpoints: nested(2) };
const LOCALITIES = { locality: nested(1), lbEndpoints: nested(2), weight: nested(3), priority: number(5) };
const LOCALITY = { region: nested(1), zone: nested(2), subZone: nested(3) };
const LB_ENDPOINT = { endpoint: nested(1), healthStatus: number(2), metadata: nested(3), weight: nested(4) };
const ENDPOINT = { address: nested(1), additionalAddresses: nested(4) };
const ADDITIONAL = { address: nested(1) };
const ADDRESS = { socketAddress: nested(1), pipe: nested(2) };
const SOCKET_ADDRESS = { address: nested(2), portValue: number(3) };
const PIPE = { path: nested(1) };
const METADATA = { filterMetadata: nested(1) };
const ENTRY = { key: nested(1), value: nested(2) };
const STRUCT = { fields: nested(1) };
const TEXT_VALUE = nested(3);
const WRAPPED = number(1);

const TAKES_MUTUAL_TLS = encode(MetadataSchema, { filterMetadata: MUTUAL_TLS });

const out = new TailBuffer();

/**
 * The bytes of what `buildLoadAssignment` builds, written straight from the input: there are ten times as many endpoints as all else together, and
 * the records between would be most of the work. Messages are written from their end, so read each function from below.
 */
export function assignmentBytes({ clusterName, localities }: LoadAssignmentInput): Uint8Array {
  out.clear();
  for (let i = localities.length - 1; i >= 0; i--) {
    const one = localities[i];
    if (one !== undefined) writeLocality(one);
  }
  writeText(ASSIGNMENT.clusterName, clusterName);
  return out.toBytes();
}

function writeLocality({ locality, priority, weight, endpoints }: LocalityInput): void {
  const start = out.size;
  writeNumber(LOCALITIES.priority, priority);
  writeWrapped(LOCALITIES.weight, weight);
  for (let i = endpoints.length - 1; i >= 0; i--) {
    const one = endpoints[i];
    if (one !== undefined) writeEndpoint(one);
  }
  const inner = out.size;
  writeText(LOCALITY.subZone, locality.subzone);
  writeText(LOCALITY.zone, locality.zone);
  writeText(LOCALITY.region, locality.region);
  out.open(LOCALITIES.locality, inner);
  out.open(ASSIGNMENT.endpoints, start);
}

function writeEndpoint(endpoint: EndpointInput): void {
  const start = out.size;
  writeWrapped(LB_ENDPOINT.weight, endpoint.weight);
  writeMetadata(endpoint);
  if (endpoint.health !== "healthy") writeNumber(LB_ENDPOINT.healthStatus, HEALTH_STATUS[endpoint.health]);
  const inner = out.size;
  if (endpoint.others !== undefined) writeOthers(endpoint, endpoint.others);
  const first = out.size;
  writeAddress(endpoint);
  out.open(ENDPOINT.address, first);
  out.open(LB_ENDPOINT.endpoint, inner);
  out.open(LOCALITIES.lbEndpoints, start);
}

function writeOthers(endpoint: EndpointInput, others: readonly string[]): void {
  for (const address of others.toReversed()) {
    const start = out.size;
    writeAddress({ ...endpoint, address });
    out.open(ADDITIONAL.address, start);
    out.open(ENDPOINT.additionalAddresses, start);
  }
}

function writeMetadata({ mutualTls, workload }: EndpointInput): void {
  if (!mutualTls && workload === "") return;
  const start = out.size;
  if (workload !== "") {
    const text = out.size;
    out.text(workload);
    out.byte(TEXT_VALUE);
    out.open(ENTRY.value, text);
    writeText(ENTRY.key, "workload");
    out.open(STRUCT.fields, text);
    out.open(ENTRY.value, text);
    writeText(ENTRY.key, "istio");
    out.open(METADATA.filterMetadata, text);
  }
  if (mutualTls) out.raw(TAKES_MUTUAL_TLS);
  out.open(LB_ENDPOINT.metadata, start);
}

/** A port that is said is written even where it is 0. */
function writeAddress({ address, unixPath, port }: EndpointInput): void {
  const start = out.size;
  if (unixPath) {
    writeText(PIPE.path, address);
    out.open(ADDRESS.pipe, start);
    return;
  }
  out.varint(uint32(port));
  out.byte(SOCKET_ADDRESS.portValue);
  writeText(SOCKET_ADDRESS.address, address);
  out.open(ADDRESS.socketAddress, start);
}

function writeText(tag: number, text: string): void {
  if (text === "") return;
  out.text(text);
  out.byte(tag);
}

function writeNumber(tag: number, value: number): void {
  if (value === 0) return;
  out.varint(uint32(value));
  out.byte(tag);
}

function writeWrapped(tag: number, value: number | undefined): void {
  if (value === undefined) return;
  const start = out.size;
  writeNumber(WRAPPED, value);
  out.open(tag, start);
}
