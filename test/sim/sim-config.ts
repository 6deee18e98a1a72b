import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { type Cluster, ClusterSchema } from "../../src/gen/envoy/config/cluster/v3/cluster_pb.js";
import { type ClusterLoadAssignment, ClusterLoadAssignmentSchema } from "../../src/gen/envoy/config/endpoint/v3/endpoint_pb.js";
import { type Listener, ListenerSchema } from "../../src/gen/envoy/config/listener/v3/listener_pb.js";
import type { RouteConfiguration } from "../../src/gen/envoy/config/route/v3/route_pb.js";
import type { ResourceSet } from "../../src/wire/encoded.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "../../src/wire/type-urls.ts";
import { wholeTable } from "../support/whole-table.ts";

/** What a proxy holds, decoded: all that decides where a request goes. */
export interface SimConfig {
  readonly listeners: readonly Listener[];
  readonly tables: ReadonlyMap<string, RouteConfiguration>;
  readonly clusters: ReadonlyMap<string, Cluster>;
  readonly assignments: ReadonlyMap<string, ClusterLoadAssignment>;
}

/** Decodes what a proxy is offered, as `meshFrom(…).resources(proxy)` gives it. */
export function simConfig(resources: ReadonlyMap<string, ResourceSet>): SimConfig {
  const decode = <S extends DescMessage>(typeUrl: string, schema: S): ReadonlyMap<string, MessageShape<S>> =>
    new Map([...(resources.get(typeUrl)?.resources ?? [])].map(([name, { body }]) => [name, fromBinary(schema, body)]));
  return {
    listeners: [...decode(LISTENER_TYPE, ListenerSchema).values()],
    tables: new Map([...(resources.get(ROUTE_TYPE)?.resources ?? [])].map(([name, table]) => [name, wholeTable(table, resources)])),
    clusters: decode(CLUSTER_TYPE, ClusterSchema),
    assignments: decode(ENDPOINT_TYPE, ClusterLoadAssignmentSchema),
  };
}
