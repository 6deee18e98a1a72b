import { fromBinary, toJson } from "@bufbuild/protobuf";
import { VirtualHostSchema } from "../../src/gen/envoy/config/route/v3/route_components_pb.js";
import { type RouteConfiguration, RouteConfigurationSchema } from "../../src/gen/envoy/config/route/v3/route_pb.js";
import type { Encoded, ResourceSet } from "../../src/wire/encoded.ts";
import { messageRegistry } from "../../src/wire/json.ts";
import { ROUTE_TYPE, VIRTUAL_HOST_TYPE } from "../../src/wire/type-urls.ts";

type Resources = ReadonlyMap<string, Pick<ResourceSet, "resources">>;

/** A route table with the hosts inside that it leaves to discovery, as Envoy has it once they have come. */
export function wholeTable(table: Encoded, resources: Resources): RouteConfiguration {
  const { vhds, ...content } = fromBinary(RouteConfigurationSchema, table.body);
  if (vhds === undefined) return content;
  const hosts = [...(resources.get(VIRTUAL_HOST_TYPE)?.resources.values() ?? [])].filter(({ name }) => name.startsWith(`${table.name}/`));
  return { ...content, virtualHosts: [...content.virtualHosts, ...hosts.map(({ body }) => fromBinary(VirtualHostSchema, body))] };
}

/** All tables with all hosts in them as JSON, hosts by name, so that neither their order nor where they come from shows. */
export async function comparableTables(resources: Resources): Promise<Readonly<Record<string, unknown>>> {
  const registry = await messageRegistry();
  const found = [...(resources.get(ROUTE_TYPE)?.resources.values() ?? [])].map((table) => {
    const json = toJson(RouteConfigurationSchema, wholeTable(table, resources), { registry }) as { virtualHosts?: { name: string }[] };
    const hosts = (json.virtualHosts ?? []).map((host) => ({ ...host, name: host.name.slice(host.name.lastIndexOf("/") + 1) }));
    const known = hosts.filter(({ name }) => name !== "none").sort((a, b) => (a.name < b.name ? -1 : 1));
    return [table.name, { ...json, virtualHosts: known }] as const;
  });
  return Object.fromEntries(found);
}
