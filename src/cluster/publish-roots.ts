import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { LeaderLease } from "../kube/lease.ts";
import type { PublishedRoots } from "../serve/cluster-link.ts";
import type { RemoteClusters } from "./remote-clusters.ts";
import { keepRemote } from "./remote-upkeep.ts";
import { keepRootBundle } from "./root-bundle.ts";
import { keepRevocationConfigMaps, keepRootConfigMaps } from "./root-config-maps.ts";

export interface PublishOptions {
  readonly published: PublishedRoots;
  readonly client: KubeClient;
  /** Other clusters, some of which have no control plane of their own. */
  readonly remotes: Pick<RemoteClusters, "whenOpened">;
  readonly namespace: string;
  readonly config: LoadedMesh;
  readonly clock: Clock;
  readonly log: Log;
}

/** Istio's name for whoever writes to all namespaces; one for all revisions, since they share the CA. */
const LEASE = "istio-namespace-controller-election";

/** Keeps the roots in every namespace, or in one ClusterTrustBundle, and what the CA has revoked in every namespace, as long as this replica leads, and those of clusters that are served from here (`EXTERNAL_ISTIOD`). */
export function publishRoots(options: PublishOptions, signal: AbortSignal): void {
  const { published, client, remotes, namespace, config, clock, log } = options;
  const { clusterWrites, namespaces } = config.process;
  if (!clusterWrites) return;
  const { podName, externalIstiod, clusterId, revision, trustBundles, publishRevoked } = config.settings;
  const holder = podName || `${hostname()}-${process.pid}`;
  const lease = new LeaderLease({ client, namespace, name: LEASE, holder, clock, log });
  const lead = async (term: AbortSignal): Promise<void> => {
    const shared = { namespace, clusterId, revision, namespaces, trustBundles, publishRevoked, published, clock, log };
    if (externalIstiod)
      remotes.whenOpened(
        (cluster, { client: there, ending }) =>
          void keepRemote({ ...shared, cluster, client: there }, AbortSignal.any([term, ending.signal])),
        term,
      );
    const everywhere = { client, namespaces, published, clock, log };
    const roots = trustBundles ? keepRootBundle({ client, published, clock, log }, term) : keepRootConfigMaps(everywhere, term);
    await Promise.all([roots, publishRevoked && keepRevocationConfigMaps(everywhere, term)]);
  };
  void lease.run(lead, signal);
}
