import type { EndpointSlice } from "../config/kinds/endpoint-slice/endpoint-slice.ts";
import type { Endpoints } from "../config/kinds/endpoints/endpoints.ts";
import type { Pod } from "../config/kinds/pod/pod.ts";
import type { ServiceSpec } from "../config/kinds/service/service.ts";
import type { ConfigObject } from "../config/object.ts";
import type { Table } from "../engine/index.ts";
import type { ServiceEntry } from "../gen/istio/networking/v1alpha3/service_entry_pb.js";
import type { WorkloadEntry } from "../gen/istio/networking/v1alpha3/workload_entry_pb.js";
import type { WorkloadGroup } from "../gen/istio/networking/v1alpha3/workload_group_pb.js";

type Objects = Table<ConfigObject>;

/** Content of each kind that the registry reads. The key of a row says its kind, and the table of kinds what content goes with it. */
interface Content {
  readonly ServiceEntry: ServiceEntry;
  readonly WorkloadEntry: WorkloadEntry;
  readonly WorkloadGroup: WorkloadGroup;
  readonly Service: ServiceSpec;
  readonly EndpointSlice: EndpointSlice;
  readonly Endpoints: Endpoints;
  readonly Pod: Pod;
}

const reader =
  <K extends keyof Content>(_kind: K) =>
  (objects: Objects, key: string): ConfigObject<Content[K]> | undefined =>
    objects.get(key) as ConfigObject<Content[K]> | undefined;

/** Rows by key, with the type that the kind in the key promises. */
export const storedServiceEntry = reader("ServiceEntry");
export const storedWorkloadEntry = reader("WorkloadEntry");
export const storedWorkloadGroup = reader("WorkloadGroup");
export const storedService = reader("Service");
export const storedEndpointSlice = reader("EndpointSlice");
export const storedEndpoints = reader("Endpoints");
export const storedPod = reader("Pod");

/** `ServiceEntry` of `ServiceEntry/shop/web`. */
export const kindOfKey = (key: string): string => key.slice(0, key.indexOf("/"));

/** Name of the Service that an EndpointSlice (by its label) or an Endpoints object (by its own name) belongs to; empty where none. */
export function serviceOfSlice(objects: Objects, key: string): string {
  const object = objects.get(key);
  return (object?.kind === "Endpoints" ? object.name : object?.labels["kubernetes.io/service-name"]) ?? "";
}
