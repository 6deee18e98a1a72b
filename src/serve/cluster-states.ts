import type { SourceState } from "./running-sources.ts";

/** A cluster that is read, in the form that `istioctl remote-clusters` of Istio knows. */
export interface ClusterState {
  readonly id: string;
  readonly syncStatus: "synced" | "syncing" | "timeout";
  /** Why it cannot be read now; what it said stays in force. */
  readonly failure?: string;
  /** Since when what it said may be out of date. */
  readonly staleSince?: string;
}

const SCHEME = "k8s://";

/** How the clusters among the sources are doing. `ownId` is the name of the one that is named by the scheme alone. */
export function clusterStates(states: readonly SourceState[], ownId: string): readonly ClusterState[] {
  return states
    .filter(({ address }) => address.startsWith(SCHEME))
    .map(({ address, loaded, failure, failingSince }) => ({
      id: address.slice(SCHEME.length) || ownId,
      syncStatus: failure !== undefined ? "timeout" : loaded ? "synced" : "syncing",
      ...(failure !== undefined && { failure }),
      ...(failingSince !== undefined && { staleSince: new Date(failingSince).toISOString() }),
    }));
}
