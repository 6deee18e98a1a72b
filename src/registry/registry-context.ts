import type { Inputs } from "../config/inputs.ts";
import { namespaceLabels } from "../config/namespace-labels.ts";
import { inCluster } from "../config/object.ts";
import type { Engine, Query } from "../engine/index.ts";
import type { ServiceEntryVisibility } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { type EntryVisibility, entryVisibility } from "./entry-visibility.ts";
import { type NetworkTable, networkTable } from "./networks.ts";
import { DISTRIBUTION_ANNOTATION } from "./traffic-distribution.ts";

/** What the registry must know of the process it runs in. */
export interface RegistrySettings {
  /** Name of the cluster whose objects these are; `Kubernetes` where nobody named it. */
  readonly clusterId: string;
  /** DNS suffix of Kubernetes Services, `cluster.local`. */
  readonly clusterDomain: string;
  /** Ranges of the addresses given to hosts that have none (PILOT_IP_AUTOALLOCATE_IPV4_PREFIX, …_IPV6_PREFIX). */
  readonly autoAddressRanges: readonly string[];
  /** Workloads have addresses of both families, and both count (ISTIO_DUAL_STACK). */
  readonly dualStack: boolean;
}

/** Istio's own values. */
export const REGISTRY_DEFAULTS: RegistrySettings = {
  clusterId: "Kubernetes",
  clusterDomain: "cluster.local",
  autoAddressRanges: ["240.240.0.0/16", "2001:2::/48"],
  dualStack: false,
};

/** What every query of the registry is defined with. */
export interface RegistryContext {
  readonly engine: Engine;
  readonly inputs: Inputs;
  readonly settings: RegistrySettings;
  readonly mesh: MeshQueries;
}

/** The little that the registry reads of the mesh-wide configuration; each value alone, so that a change elsewhere in it re-runs nothing. */
export interface MeshQueries {
  readonly defaultExportTo: Query<"", readonly string[]>;
  /** How far ServiceEntries of a namespace may be seen at most (`serviceEntryVisibility`), whatever they export themselves to. */
  readonly entryVisibility: Query<string, EntryVisibility>;
  /** Networks as they are for workloads of a cluster; "" is this one. */
  readonly networks: Query<string, NetworkTable>;
  /** Network of a cluster's pods: label of its system namespace. */
  readonly clusterNetwork: Query<string, string>;
  /** What a namespace says about the endpoints that clients prefer; by its name, with its cluster where that is another one. */
  readonly distribution: Query<string, string>;
}

/** Defines the queries over mesh-wide configuration. */
export function defineMeshQueries(engine: Engine, inputs: Inputs, settings: RegistrySettings): MeshQueries {
  const rootNamespace = engine.query<"", string>({
    name: "registry.rootNamespace",
    compute: () => inputs.mesh.get("mesh")?.rootNamespace || "istio-system",
  });
  const visibilitySettings = engine.query<"", ServiceEntryVisibility | undefined>({
    name: "registry.visibilitySettings",
    compute: () => inputs.mesh.get("mesh")?.serviceEntryVisibility,
  });
  return {
    defaultExportTo: engine.query<"", readonly string[]>({
      name: "registry.defaultExportTo",
      compute: () => {
        const wanted = inputs.mesh.get("mesh")?.defaultServiceExportTo ?? [];
        return wanted.length > 0 ? [...wanted] : ["*"];
      },
    }),
    entryVisibility: engine.query<string, EntryVisibility>({
      name: "registry.entryVisibility",
      compute: (namespace) =>
        entryVisibility(visibilitySettings(""), () => namespaceLabels(namespace, inputs.objects.get(`Namespace//${namespace}`)?.labels)),
    }),
    networks: engine.query<string, NetworkTable>({
      name: "registry.networks",
      compute: (cluster) => networkTable(inputs.networks.get("networks"), cluster === "" ? settings.clusterId : cluster),
    }),
    clusterNetwork: engine.query<string, string>({
      name: "registry.clusterNetwork",
      compute: (cluster) =>
        inputs.objects.get(`Namespace//${rootNamespace("")}${inCluster(cluster)}`)?.labels["topology.istio.io/network"] ?? "",
    }),
    distribution: engine.query<string, string>({
      name: "registry.distribution",
      compute: (namespace) => inputs.objects.get(`Namespace//${namespace}`)?.annotations[DISTRIBUTION_ANNOTATION] ?? "",
    }),
  };
}
