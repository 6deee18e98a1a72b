import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { LeaderLease } from "../kube/lease.ts";
import { keepRootConfigMaps, type PublishedRoots } from "./root-config-maps.ts";

export interface PublishOptions {
  readonly published: PublishedRoots;
  readonly client: KubeClient;
  readonly namespace: string;
  readonly config: LoadedMesh;
  readonly clock: Clock;
  readonly log: Log;
}

/** Istio's name for whoever writes to all namespaces; one for all revisions, since they share the CA. */
const LEASE = "istio-namespace-controller-election";

/** Keeps the roots in every namespace as long as this replica leads. */
export function publishRoots({ published, client, namespace, config, clock, log }: PublishOptions, signal: AbortSignal): void {
  const { clusterWrites, namespaces } = config.process;
  if (!clusterWrites) return;
  const holder = config.settings.podName || `${hostname()}-${process.pid}`;
  const lease = new LeaderLease({ client, namespace, name: LEASE, holder, clock, log });
  void lease.run((term) => keepRootConfigMaps({ client, namespaces, published, clock, log }, term), signal);
}
