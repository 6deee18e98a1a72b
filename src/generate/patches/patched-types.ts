import type { DescMessage } from "@bufbuild/protobuf";
import type { ApplyTo, Operation } from "../../envoy/patch/patch.ts";
import { BootstrapSchema } from "../../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import { TypedExtensionConfigSchema } from "../../gen/envoy/config/core/v3/extension_pb.js";
import { FilterChainSchema, FilterSchema, ListenerFilterSchema } from "../../gen/envoy/config/listener/v3/listener_components_pb.js";
import { ListenerSchema } from "../../gen/envoy/config/listener/v3/listener_pb.js";
import { RouteSchema, VirtualHostSchema } from "../../gen/envoy/config/route/v3/route_components_pb.js";
import { RouteConfigurationSchema } from "../../gen/envoy/config/route/v3/route_pb.js";
import { HttpFilterSchema } from "../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js";

/** What patches of a kind are made of, and what they can do. */
export interface PatchedType {
  readonly schema: DescMessage;
  readonly operations: readonly Operation[];
}

const MERGING: readonly Operation[] = ["MERGE", "MERGE_AND_REPLACE_LIST"];
const PLACING: readonly Operation[] = ["ADD", "INSERT_BEFORE", "INSERT_AFTER", "INSERT_FIRST"];

/** Istio's table of which operation does something where. */
export const PATCHED_TYPES: Readonly<Record<ApplyTo, PatchedType>> = {
  LISTENER: { schema: ListenerSchema, operations: [...MERGING, "ADD", "REMOVE"] },
  LISTENER_FILTER: { schema: ListenerFilterSchema, operations: ["MERGE", ...PLACING, "REMOVE", "REPLACE"] },
  FILTER_CHAIN: { schema: FilterChainSchema, operations: [...MERGING, "ADD", "REMOVE"] },
  NETWORK_FILTER: { schema: FilterSchema, operations: ["MERGE", ...PLACING, "REMOVE", "REPLACE"] },
  HTTP_FILTER: { schema: HttpFilterSchema, operations: ["MERGE", ...PLACING, "REMOVE", "REPLACE"] },
  ROUTE_CONFIGURATION: { schema: RouteConfigurationSchema, operations: MERGING },
  VIRTUAL_HOST: { schema: VirtualHostSchema, operations: [...MERGING, "ADD", "REMOVE", "REPLACE"] },
  HTTP_ROUTE: { schema: RouteSchema, operations: [...MERGING, ...PLACING, "REMOVE"] },
  CLUSTER: { schema: ClusterSchema, operations: [...MERGING, "ADD", "REMOVE"] },
  EXTENSION_CONFIG: { schema: TypedExtensionConfigSchema, operations: ["ADD"] },
  BOOTSTRAP: { schema: BootstrapSchema, operations: MERGING },
};

/** The operation that is carried out: where order means nothing, inserting is adding, as in Istio. */
export function effectiveOperation(applyTo: ApplyTo, operation: Operation): Operation {
  const { operations } = PATCHED_TYPES[applyTo];
  const inserts = operation.startsWith("INSERT_");
  return inserts && !operations.includes(operation) && operations.includes("ADD") ? "ADD" : operation;
}
