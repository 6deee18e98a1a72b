import { assignmentsOf } from "../generate/endpoints/assignments.ts";
import type { NetworkDoor } from "./api-mesh-types.ts";
import type { DebugDeps } from "./debug-deps.ts";
import { endpointShards } from "./endpoint-shards.ts";
import { originFinder } from "./object-origin.ts";
import { ok, type Page } from "./page.ts";
import { registryEndpoints, registryServices } from "./registry-dump.ts";

/** Pages about services, endpoints and networks. */
export const registryPages = ({ world: { context }, store }: DebugDeps): readonly Page[] => [
  {
    path: "/debug/registryz",
    about: "all services",
    answer: () => ok(registryServices(context.registry, originFinder(store))),
  },
  {
    path: "/debug/endpointz",
    about: "endpoints of every service port; ?host=name narrows it",
    answer: (query) => ok(registryEndpoints(context.registry, originFinder(store), query.get("host") ?? undefined)),
  },
  {
    path: "/debug/endpointShardz",
    about: "endpoints by host, namespace and the cluster they come from; ?host=name narrows it",
    answer: (query) => ok(endpointShards(context.registry, query.get("host") ?? undefined)),
  },
  {
    path: "/debug/networkz",
    about: "gateways into the networks of the mesh, names resolved",
    answer: () => ok(networkDoors(assignmentsOf(context).networkGateways(""))),
  },
];

const networkDoors = (
  gateways: ReadonlyMap<string, readonly { readonly address: string; readonly port: number }[]>,
): readonly NetworkDoor[] =>
  [...gateways].flatMap(([network, list]) => list.map(({ address, port }) => ({ Network: network, Addr: address, Port: port })));
