import { create } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { contentHash } from "../../base/hash.ts";
import { NameTable_NameInfoSchema } from "../../gen/istio/networking/nds/v1/name_table_pb.js";
import { type ProxyView, supportsIpv4, supportsIpv6 } from "../../model/proxy.ts";
import { refOf, type ServiceRef, serviceKey } from "../../model/service.ts";
import { encode, encodedPieces, sameEncoded } from "../../wire/encode.ts";
import type { Encoded, ResourceSet } from "../../wire/encoded.ts";
import { NAME_TABLE_TYPE } from "../../wire/type-urls.ts";
import type { ResourceProvider } from "../../xds/provider.ts";
import { type GenerateContext, type ScopeKey, scopeId } from "../context.ts";
import { definePrepareOnce } from "../prepare-once.ts";
import { createCollector, sameResourceSet } from "../resource-set.ts";
import { type NameEntry, namesOf, type ResolverTraits } from "./service-names.ts";

/** A workload has one table, which has no name, as in Istio. */
const THE_TABLE = "";

interface TableKey {
  readonly scope: ScopeKey;
  readonly traits: ResolverTraits;
}

interface ServiceNamesKey extends ServiceRef {
  readonly id: string;
  readonly traits: ResolverTraits;
}

/** The services whose names are in a table. Equal ids mean equal lists. */
interface TableServices {
  readonly id: string;
  readonly services: readonly ServiceNamesKey[];
}

/** A name as a piece of a table: its bytes are made once for all tables that have it. */
interface EncodedName {
  readonly host: string;
  readonly bytes: Uint8Array;
}

/**
 * The table from which the agent beside a workload answers DNS questions (NDS): all hosts its scope imports, with addresses. Workloads of one
 * scope share it. Services are looked at one by one, and endpoints only of those that have no address: whatever else happens to endpoints
 * touches no table.
 */
export function createNameTableProvider(ctx: GenerateContext): ResourceProvider {
  const { keys, names, set } = defineQueries(ctx);
  const prepareOnce = definePrepareOnce(ctx.engine);
  const keyOf = (view: ProxyView): TableKey => ({
    scope: { namespace: view.namespace, sidecar: view.sidecar },
    traits: {
      autoAddresses: view.dnsCapture,
      families: [...(supportsIpv4(view) ? ([4] as const) : []), ...(supportsIpv6(view) ? ([6] as const) : [])],
      network: view.network,
      clusterId: view.clusterId,
      remoteCluster: view.remoteCluster,
    },
  });
  return {
    typeUrl: NAME_TABLE_TYPE,
    prepare(view) {
      const shared = keys(keyOf(view));
      return prepareOnce(shared, function* () {
        for (const service of shared.services) {
          names.try(service);
          yield;
        }
      });
    },
    offered: (view) => set(keys(keyOf(view))),
    provenance: (view) =>
      keys(keyOf(view)).services.flatMap((ref) => (names(ref).length === 0 ? [] : (ctx.registry.service(ref)?.objectKey ?? []))),
  };
}

function defineQueries(ctx: GenerateContext) {
  const keys = ctx.engine.query<TableKey, TableServices>({
    name: "names.services",
    id: ({ scope, traits }) => `${scopeId(scope)}|${traitsId(traits)}`,
    compute: ({ scope, traits }) => {
      const imported = ctx.lookups.scope(scope).egress.flatMap(({ services }) => services);
      const services = [...new Map(imported.map((ref) => [ref.host, ref])).values()].map((ref) => ({
        ...refOf(ref),
        id: `${serviceKey(ref)}|${traitsId(traits)}`,
        traits,
      }));
      return { id: contentHash(services.map(({ id }) => id).join("\n")), services };
    },
    same: (a, b) => a.id === b.id,
  });
  const names = ctx.engine.query<ServiceNamesKey, readonly EncodedName[]>({
    name: "names.ofService",
    id: ({ id }) => id,
    compute: (ref) => {
      const service = ctx.registry.service(ref);
      if (service === undefined) return [];
      const endpoints = () => service.ports.flatMap(({ number }) => ctx.registry.endpoints(ref, number));
      return namesOf(service, ref.traits, endpoints).map(encodedName);
    },
  });
  const table = ctx.engine.query<TableServices, Encoded>({
    name: "names.table",
    id: ({ id }) => id,
    compute: ({ services }) => encodedTable(services.flatMap((service) => names(service))),
    same: sameEncoded,
  });
  const set = ctx.engine.query<TableServices, ResourceSet>({
    name: "names.set",
    id: ({ id }) => id,
    compute: (services) => {
      const collector = createCollector();
      collector.take(THE_TABLE, table.try(services));
      return collector.set;
    },
    same: sameResourceSet,
  });
  return { keys, names, set };
}

const traitsId = (traits: ResolverTraits): string => Object.values(traits).join();

/** A field `table` of the message: a map entry of host and what is known of it. */
function encodedName({ host, ips, registry, shortname, namespace }: NameEntry): EncodedName {
  const info = create(NameTable_NameInfoSchema, { ips: [...ips], registry, shortname, namespace });
  const writer = new BinaryWriter();
  writer.tag(1, WireType.LengthDelimited).fork();
  writer.tag(1, WireType.LengthDelimited).string(host);
  writer.tag(2, WireType.LengthDelimited).bytes(encode(NameTable_NameInfoSchema, info));
  writer.join();
  return { host, bytes: writer.finish() };
}

/** A message is the concatenation of its fields: the table is put together from names that are encoded already, each host once. */
function encodedTable(found: readonly EncodedName[]): Encoded {
  const byHost = new Map(found.toReversed().map((name) => [name.host, name]));
  const sorted = [...byHost.values()].sort((a, b) => (a.host < b.host ? -1 : 1));
  return encodedPieces(
    NAME_TABLE_TYPE,
    THE_TABLE,
    sorted.map(({ bytes }) => bytes),
  );
}
