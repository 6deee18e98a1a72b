import { fromBinary, isMessage, type Registry } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type VirtualHost, VirtualHostSchema } from "../../gen/envoy/config/route/v3/route_components_pb.js";
import { type RouteConfiguration, RouteConfigurationSchema } from "../../gen/envoy/config/route/v3/route_pb.js";
import { encode } from "../../wire/encode.ts";
import { type Applied, applyPatches, messageFaults } from "./apply.ts";
import type { Patch } from "./patch.ts";
import { patchRoutes, patchVirtualHost, type RoutePatching } from "./patch-routes.ts";
import { PatchTrace } from "./trace.ts";

/** A route table and the patches that speak of it. */
export interface TableToPatch extends Omit<RoutePatching, "trace"> {
  readonly body: Uint8Array;
  readonly registry: Registry;
}

/**
 * Applies patches to an encoded route table, host by host, giving way after each: a table may have thousands, and most are no patch's business.
 * Those are taken over as they are. Where the result would be one that Envoy refuses, the table is patched as a whole again, in one step, by
 * the rules that find the patch at fault (`applyPatches`).
 */
export function* patchTable(table: TableToPatch): Generator<void, Applied> {
  const { body, patches } = table;
  if (patches.some(changesHosts)) return wholeTable(table);
  const { head, hosts } = splitTable(body);
  const trace = new PatchTrace();
  const message = fromBinary(RouteConfigurationSchema, head);
  patchRoutes(message, { ...table, trace });
  if (messageFaults(RouteConfigurationSchema, message, table.registry).length > 0) return wholeTable(table);
  const added = message.virtualHosts.splice(0);
  const domains = new Set<string>();
  const pieces: Uint8Array[] = [];
  for (const bytes of hosts) {
    const patched = patchHostBytes(bytes, table, trace);
    if (patched === undefined) return wholeTable(table);
    if (patched.bytes !== undefined) pieces.push(patched.bytes);
    if (!takeAll(domains, patched.domains)) return wholeTable(table);
    yield;
  }
  for (const host of added) {
    if (!takeAll(domains, host.domains)) return wholeTable(table);
    pieces.push(encode(VirtualHostSchema, host));
  }
  return { body: trace.applied.size === 0 ? body : joined(message, pieces), outcome: trace };
}

/** Hosts that a patch of the table itself brings or replaces: they are patched in turn, which only the whole table shows. */
const changesHosts = (patch: Patch): boolean =>
  patch.applyTo === "ROUTE_CONFIGURATION" && isMessage(patch.value, RouteConfigurationSchema) && patch.value.virtualHosts.length > 0;

interface PatchedHost {
  /** Undefined where it was removed. */
  readonly bytes: Uint8Array | undefined;
  readonly domains: readonly string[];
}

/** Undefined where the result would be wrong. */
function patchHostBytes(bytes: Uint8Array, { patches, registry }: TableToPatch, trace: PatchTrace): PatchedHost | undefined {
  const host = fromBinary(VirtualHostSchema, bytes);
  const own = new PatchTrace();
  const patched: VirtualHost | undefined = patchVirtualHost(host, patches, own);
  trace.add(own);
  if (own.applied.size === 0) return { bytes, domains: host.domains };
  if (patched === undefined) return { bytes: undefined, domains: [] };
  if (messageFaults(VirtualHostSchema, patched, registry).length > 0) return undefined;
  return { bytes: encode(VirtualHostSchema, patched), domains: patched.domains };
}

/** False where one of them is taken: a domain may stand once in a table. */
function takeAll(taken: Set<string>, domains: readonly string[]): boolean {
  return domains.every((domain) => taken.size !== taken.add(domain.toLowerCase()).size);
}

/** Exported for tests: what `patchTable` must agree with. */
export function wholeTable({ body, registry, ...patching }: TableToPatch): Applied {
  return applyPatches({
    schema: RouteConfigurationSchema,
    body,
    patches: patching.patches,
    registry,
    patch: (message, some, trace) => {
      patchRoutes(message, { ...patching, patches: some, trace });
      return message;
    },
  });
}

const VIRTUAL_HOSTS = 2;

/** The virtual hosts of an encoded table, each still encoded, and the table without them. */
function splitTable(body: Uint8Array): { readonly head: Uint8Array; readonly hosts: readonly Uint8Array[] } {
  const reader = new BinaryReader(body);
  const rest: Uint8Array[] = [];
  const hosts: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const [field, wireType] = reader.tag();
    if (field === VIRTUAL_HOSTS && wireType === WireType.LengthDelimited) hosts.push(reader.bytes());
    else {
      reader.skip(wireType, field);
      rest.push(body.subarray(start, reader.pos));
    }
  }
  return { head: Buffer.concat(rest), hosts };
}

function joined(table: RouteConfiguration, hosts: readonly Uint8Array[]): Uint8Array {
  const writer = new BinaryWriter();
  for (const host of hosts) writer.tag(VIRTUAL_HOSTS, WireType.LengthDelimited).bytes(host);
  return Buffer.concat([encode(RouteConfigurationSchema, table), writer.finish()]);
}
