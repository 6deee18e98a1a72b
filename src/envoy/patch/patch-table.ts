import { fromBinary, isMessage, type Registry } from "@bufbuild/protobuf";
import { BinaryReader, BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type VirtualHost, VirtualHostSchema } from "../../gen/envoy/config/route/v3/route_components_pb.js";
import { type RouteConfiguration, RouteConfigurationSchema } from "../../gen/envoy/config/route/v3/route_pb.js";
import { encode } from "../../wire/encode.ts";
import { type Application, type Applied, type Attempt, applyInSteps, applyPatches, wholeAttempt } from "./apply.ts";
import { constraintFaults } from "./constraints.ts";
import type { Fault } from "./fault.ts";
import type { Patch } from "./patch.ts";
import { patchRoutes, patchVirtualHost, type RoutePatching } from "./patch-routes.ts";
import { domainClashes } from "./structure.ts";
import { PatchTrace } from "./trace.ts";

/** A route table and the patches that speak of it. */
export interface TableToPatch extends Omit<RoutePatching, "trace"> {
  readonly body: Uint8Array;
  readonly registry: Registry;
}

/**
 * Applies patches to an encoded route table, host by host, giving way after each: a table may have thousands, and most are no patch's business.
 * Those are taken over as they are. Where the result would be one that Envoy refuses, the patches at fault are found in the same way.
 */
export function patchTable(table: TableToPatch): Generator<void, Applied> {
  const application = wholeApplication(table);
  return applyInSteps(table, (patches) =>
    patches.some(changesHosts) ? wholeAttempt(application, patches) : attemptByHosts({ ...table, patches }),
  );
}

function* attemptByHosts(table: TableToPatch): Generator<void, Attempt> {
  const { body, registry } = table;
  const { head, hosts } = splitTable(body);
  const trace = new PatchTrace();
  const message = fromBinary(RouteConfigurationSchema, head);
  patchRoutes(message, { ...table, trace });
  const added = message.virtualHosts.splice(0);
  const kept = new KeptHosts(registry);
  for (const bytes of hosts) {
    const { host, changed } = patchHostBytes(bytes, table, trace);
    if (host !== undefined) kept.add(host, changed ? undefined : bytes);
    yield;
  }
  for (const host of added) kept.add(host, undefined);
  const faults = [...constraintFaults(RouteConfigurationSchema, message, registry), ...kept.faults, ...kept.clashes];
  return { trace, faults, result: () => joined(message, kept.pieces()) };
}

/** The hosts of a table after patches, and what is wrong with them. */
class KeptHosts {
  readonly faults: Fault[] = [];
  /** A domain may stand once in a table. */
  readonly clashes: Fault[] = [];
  readonly #registry: Registry;
  readonly #hosts: { readonly host: VirtualHost; readonly bytes: Uint8Array | undefined }[] = [];
  readonly #owners = new Map<string, string>();

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** `bytes`: its encoded form, where it is as it was; then it is right as it was, too. */
  add(host: VirtualHost, bytes: Uint8Array | undefined): void {
    const path = `virtual_hosts[${this.#hosts.length}]`;
    const faults = bytes === undefined ? constraintFaults(VirtualHostSchema, host, this.#registry) : [];
    for (const fault of faults) this.faults.push({ ...fault, path: fault.path === "" ? path : `${path}.${fault.path}` });
    this.clashes.push(...domainClashes(host, path, this.#owners));
    this.#hosts.push({ host, bytes });
  }

  pieces(): readonly Uint8Array[] {
    return this.#hosts.map(({ host, bytes }) => bytes ?? encode(VirtualHostSchema, host));
  }
}

/** Hosts that a patch of the table itself brings or replaces: they are patched in turn, which only the whole table shows. */
const changesHosts = (patch: Patch): boolean =>
  patch.applyTo === "ROUTE_CONFIGURATION" && isMessage(patch.value, RouteConfigurationSchema) && patch.value.virtualHosts.length > 0;

interface PatchedHost {
  /** Undefined where it was removed. */
  readonly host: VirtualHost | undefined;
  readonly changed: boolean;
}

function patchHostBytes(bytes: Uint8Array, { patches }: TableToPatch, trace: PatchTrace): PatchedHost {
  const own = new PatchTrace();
  const host = patchVirtualHost(fromBinary(VirtualHostSchema, bytes), patches, own);
  trace.add(own);
  return { host, changed: own.applied.size > 0 };
}

/** Exported for tests: what `patchTable` must agree with. */
export const wholeTable = (table: TableToPatch): Applied => applyPatches(wholeApplication(table));

const wholeApplication = ({ body, registry, ...patching }: TableToPatch): Application<typeof RouteConfigurationSchema> => ({
  schema: RouteConfigurationSchema,
  body,
  patches: patching.patches,
  registry,
  patch: (message, some, trace) => {
    patchRoutes(message, { ...patching, patches: some, trace });
    return message;
  },
});

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
