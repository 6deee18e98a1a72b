import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import type { StatusSource } from "../config/status/object-report.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { LeaderLease } from "../kube/lease.ts";
import { revisionSuffix } from "../webhooks/webhook-configurations.ts";
import { ReplicaLeases } from "./status/replica-leases.ts";
import { StatusKeeper } from "./status/status-keeper.ts";

export interface KeepStatusOptions {
  readonly source: StatusSource;
  readonly client: KubeClient;
  /** Of the control plane. */
  readonly namespace: string;
  readonly config: LoadedMesh;
  readonly clock: Clock;
  readonly log: Log;
}

const LEASE = "istiod-status";

/**
 * Keeps the status of objects as long as this replica leads; not where the cluster is only read. Objects that are for all revisions are written by one replica
 * of all revisions, those labelled for a revision by one of its own, so two control planes never write to the same object.
 */
export function keepStatus({ source, client, namespace, config, clock, log }: KeepStatusOptions, signal: AbortSignal): void {
  const { settings, process: own } = config;
  if (!own.clusterWrites || !settings.statusWrites) return;
  const holder = settings.podName || `${hostname()}-${process.pid}`;
  const replicas = settings.distributionTracking
    ? new ReplicaLeases({ client, namespace, holder, clock, log }, () => keeper.note())
    : undefined;
  const keeper = new StatusKeeper({
    client,
    source,
    namespaces: own.namespaces,
    replicas,
    rate: {
      perSecond: atLeastOne(settings.statusPerSecond),
      burst: atLeastOne(settings.statusBurst),
      workers: atLeastOne(settings.statusWorkers),
    },
    intervalMs: settings.statusIntervalMs,
    clock,
    log,
  });
  void replicas?.run(signal);
  void keeper.run(signal);
  const leases = Map.groupBy(new Set(["", settings.revision]), (revision) => `${LEASE}${revisionSuffix(revision)}`);
  for (const [name, revisions] of leases) {
    const lease = new LeaderLease({ client, namespace, name, holder, clock, log });
    void lease.run((term) => keeper.lead(revisions, term), signal);
  }
}

/** A rate of none would be no status at all, which has a setting of its own. */
const atLeastOne = (count: number): number => Math.max(1, count);
