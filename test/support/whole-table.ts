import { fromBinary } from "@bufbuild/protobuf";
import { VirtualHostSchema } from "../../src/gen/envoy/config/route/v3/route_components_pb.js";
import { type RouteConfiguration, RouteConfigurationSchema } from "../../src/gen/envoy/config/route/v3/route_pb.js";
import type { Encoded, ResourceSet } from "../../src/wire/encoded.ts";
import { VIRTUAL_HOST_TYPE } from "../../src/wire/type-urls.ts";

/** A route table with the hosts inside that it leaves to discovery, as Envoy has it once they have come. */
export function wholeTable(table: Encoded, resources: ReadonlyMap<string, ResourceSet>): RouteConfiguration {
  const { vhds, ...content } = fromBinary(RouteConfigurationSchema, table.body);
  if (vhds === undefined) return content;
  const hosts = [...(resources.get(VIRTUAL_HOST_TYPE)?.resources.values() ?? [])].filter(({ name }) => name.startsWith(`${table.name}/`));
  return { ...content, virtualHosts: [...content.virtualHosts, ...hosts.map(({ body }) => fromBinary(VirtualHostSchema, body))] };
}
