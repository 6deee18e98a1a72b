import { hostname } from "node:os";
import { join } from "node:path";
import type { JsonValue } from "@bufbuild/protobuf";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { ConfigObject } from "../config/object.ts";
import type { ChangeSummary, ConfigStore } from "../config/store/store-types.ts";
import type { Node } from "../gen/envoy/config/core/v3/base_pb.js";
import type { WorkloadEntry } from "../gen/istio/networking/v1alpha3/workload_entry_pb.js";
import type { WorkloadGroup } from "../gen/istio/networking/v1alpha3/workload_group_pb.js";
import { formatLocality } from "../model/locality.ts";
import type { ProxyView } from "../model/proxy.ts";
import { isHealthChecked } from "../registry/workload-entry.ts";
import type { Settings } from "../settings/table.ts";
import { keptList } from "../sources/registered/kept-list.ts";
import { RegisteredWorkloads, type RegistrationEvent, RegistrationRefusal } from "../sources/registered/registered-workloads.ts";
import { type Claim, conditionOf, type GroupTemplate } from "../sources/registered/registration.ts";
import { REGISTRATION, type RegistrationBoard } from "../sources/registered/registration-board.ts";
import { registrationFile } from "../sources/registered/registration-file.ts";
import { isHealthReport, ReportedHealth } from "../sources/registered/reported-health.ts";
import type { DiscoveryRequest } from "../wire/discovery-request.ts";
import type { Peer } from "../wire/discovery-stream.ts";
import { GRPC_STATUS, type GrpcStatus } from "../wire/grpc-status.ts";
import { StreamRefusal } from "../xds/refusal.ts";

export interface RegistrationsOptions {
  readonly baseDir: string;
  readonly settings: Pick<Settings, "autoRegistration" | "workloadHealthChecks" | "workloadEntryGraceMs" | "podName">;
  store(): Pick<ConfigStore, "get" | "status">;
  /** Where other replicas learn of workloads that are connected here; undefined where there is nobody to tell. */
  board(self: Self): RegistrationBoard | undefined;
  readonly clock: Clock;
  readonly log: Log;
  note(event: RegistrationEvent): void;
  /** An agent reported the health of the workload that a WorkloadEntry, by its key, was written for; undefined: nothing is known any more. */
  healthChanged(key: string, healthy: boolean | undefined): void;
}

/** This replica, as others know it. */
export interface Self {
  readonly controller: string;
  readonly graceMs: number;
}

/** Workloads outside Kubernetes that come and go with their connections. */
export interface Registrations {
  readonly source: RegisteredWorkloads;
  /** A proxy is on a stream; throws `StreamRefusal` where it wants to be registered as what it is not. */
  seen(node: Node, view: Pick<ProxyView, keyof NodeClaim>, peer: Peer): void;
  left(peer: Peer): void;
  /** Objects are in force: members follow their group. */
  committed(summary: Pick<ChangeSummary, "added" | "changed" | "removed">): void;
  /** `istio.v1.HealthInformation`: an error means that the workload is ill. */
  health(peer: Peer, request: Pick<DiscoveryRequest, "error">): void;
  stop(): Promise<void>;
}

type NodeClaim = Pick<ProxyView, "namespace" | "serviceAccount" | "addresses" | "labels" | "network" | "locality" | "proven">;

const STATUS = {
  "no group": GRPC_STATUS.FAILED_PRECONDITION,
  identity: GRPC_STATUS.PERMISSION_DENIED,
  address: GRPC_STATUS.INVALID_ARGUMENT,
  "too many": GRPC_STATUS.RESOURCE_EXHAUSTED,
} as const satisfies Record<RegistrationRefusal["reason"], GrpcStatus>;

/** Brings back the workloads of before a restart and follows those that connect. */
export async function createRegistrations(options: RegistrationsOptions): Promise<Registrations> {
  const { baseDir, settings, store, clock, log, note } = options;
  const self: Self = { controller: settings.podName || hostname(), graceMs: settings.workloadEntryGraceMs };
  const board = options.board(self);
  const source = new RegisteredWorkloads({
    ...self,
    group: (namespace, name) => templateOf(store().get(`WorkloadGroup/${namespace}/${name}`)),
    store: registrationFile(join(baseDir, "var/lib/istio/registered-workloads.json"), log),
    board,
    isElsewhere: (key) => ![undefined, source.name].includes(store().status(key)?.source),
    accountOf: (key) => accountOf(store().get(key)),
    clock,
    log,
    note,
  });
  if (settings.autoRegistration) await source.restore();
  const reported = await openReports(options, board);
  let first = true;
  return {
    source,
    seen(node, view, peer) {
      const claim = settings.autoRegistration ? claimOf(node, view) : undefined;
      if (claim === undefined) {
        const entry = settings.workloadHealthChecks && !reported.has(peer) ? entryOf(node, view, store()) : undefined;
        if (entry !== undefined) reported.connect(peer, entry);
        return;
      }
      if (!view.proven)
        throw new StreamRefusal(
          GRPC_STATUS.PERMISSION_DENIED,
          "only a workload that has proved who it is can register: call the secure port",
        );
      try {
        source.connect(peer, claim);
      } catch (error) {
        if (error instanceof RegistrationRefusal) throw new StreamRefusal(STATUS[error.reason], error.message);
        throw error;
      }
    },
    left(peer) {
      source.leave(peer);
      reported.leave(peer);
    },
    committed({ added, changed, removed }) {
      source.entriesChanged([...added, ...changed, ...removed]);
      if (!first && ![...added, ...changed, ...removed].some((key) => key.startsWith("WorkloadGroup/"))) return;
      first = false;
      source.groupsChanged();
    },
    health(peer, { error }) {
      if (!settings.workloadHealthChecks) return;
      const health = { healthy: error === undefined, message: error?.message ?? "" };
      if (!source.report(peer, health) && !reported.report(peer, health))
        log.debug({ peer: peer.address }, "the health of a workload without a WorkloadEntry that is checked is not looked at");
    },
    async stop() {
      await Promise.all([source.stop(), reported.stop()]);
    },
  };
}

/** The account of a workload that registered itself, here or elsewhere. */
const accountOf = (object: ConfigObject | undefined): string | undefined =>
  object === undefined || (object.annotations[REGISTRATION.group] ?? "") === ""
    ? undefined
    : (object as ConfigObject<WorkloadEntry>).spec.serviceAccount || undefined;

async function openReports(options: RegistrationsOptions, board: RegistrationBoard | undefined): Promise<ReportedHealth> {
  const { baseDir, settings, clock, log, healthChanged } = options;
  const path = join(baseDir, "var/lib/istio/reported-health.json");
  const reported = new ReportedHealth({
    store: keptList({ path, of: "reports of workloads' health", isEntry: isHealthReport, log }),
    graceMs: settings.workloadEntryGraceMs,
    clock,
    log,
    changed(key, healthy) {
      healthChanged(key, healthy);
      const [, namespace = "", name = ""] = key.split("/");
      const condition = healthy === undefined ? undefined : conditionOf({ healthy, message: "", at: clock.now() });
      board?.report({ namespace, name }, condition);
    },
  });
  if (settings.workloadHealthChecks) await reported.restore();
  return reported;
}

/**
 * The WorkloadEntry that a proxy says was written for it, where its health is checked (annotation `proxy.istio.io/health-checks-enabled`). Throws `StreamRefusal`
 * where there is none, or it is another's, as Istio does.
 */
function entryOf({ metadata }: Node, view: NodeClaim, store: Pick<ConfigStore, "get">): string | undefined {
  const name = metadata?.WORKLOAD_ENTRY;
  if (typeof name !== "string" || name === "") return undefined;
  const key = `WorkloadEntry/${view.namespace}/${name}`;
  const object = store.get(key) as ConfigObject<WorkloadEntry> | undefined;
  if (object === undefined)
    throw new StreamRefusal(GRPC_STATUS.FAILED_PRECONDITION, `there is no ${key}, which the proxy's node metadata WORKLOAD_ENTRY names`);
  if (!isHealthChecked(object)) return undefined;
  if (!view.proven)
    throw new StreamRefusal(
      GRPC_STATUS.PERMISSION_DENIED,
      "only a workload that has proved who it is can tell of its health: call the secure port",
    );
  const { serviceAccount } = object.spec;
  if (serviceAccount !== "" && serviceAccount !== view.serviceAccount)
    throw new StreamRefusal(GRPC_STATUS.PERMISSION_DENIED, `${key} is of another service account than the caller`);
  return key;
}

function claimOf({ metadata }: Node, view: NodeClaim): Claim | undefined {
  const group = metadata?.AUTO_REGISTER_GROUP;
  if (typeof group !== "string" || group === "") return undefined;
  return {
    namespace: view.namespace,
    group,
    serviceAccount: view.serviceAccount,
    address: view.addresses[0] ?? "",
    labels: view.labels,
    network: view.network,
    locality: formatLocality(view.locality),
    healthChecked: hasProbe(metadata?.PROXY_CONFIG),
  };
}

const hasProbe = (config: JsonValue | undefined): boolean =>
  typeof config === "object" && config !== null && "readinessProbe" in config && config.readinessProbe !== null;

function templateOf(object: ConfigObject | undefined): GroupTemplate | undefined {
  if (object === undefined) return undefined;
  const { metadata, template } = (object as ConfigObject<WorkloadGroup>).spec;
  return {
    labels: { ...template?.labels, ...metadata?.labels },
    annotations: { ...metadata?.annotations },
    ports: { ...template?.ports },
    serviceAccount: template?.serviceAccount ?? "",
    network: template?.network ?? "",
    locality: template?.locality ?? "",
    weight: template?.weight ?? 0,
  };
}
