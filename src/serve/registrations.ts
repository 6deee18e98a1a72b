import { join } from "node:path";
import type { JsonValue } from "@bufbuild/protobuf";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { ConfigObject } from "../config/object.ts";
import type { ChangeSummary, ConfigStore } from "../config/store/store-types.ts";
import type { Node } from "../gen/envoy/config/core/v3/base_pb.js";
import type { WorkloadGroup } from "../gen/istio/networking/v1alpha3/workload_group_pb.js";
import { formatLocality } from "../model/locality.ts";
import type { ProxyView } from "../model/proxy.ts";
import type { Settings } from "../settings/table.ts";
import { RegisteredWorkloads, type RegistrationEvent, RegistrationRefusal } from "../sources/registered/registered-workloads.ts";
import type { Claim, GroupTemplate } from "../sources/registered/registration.ts";
import { registrationFile } from "../sources/registered/registration-file.ts";
import type { DiscoveryRequest } from "../wire/discovery-request.ts";
import type { Peer } from "../wire/discovery-stream.ts";
import { GRPC_STATUS, type GrpcStatus } from "../wire/grpc-status.ts";
import { StreamRefusal } from "../xds/refusal.ts";

export interface RegistrationsOptions {
  readonly baseDir: string;
  readonly settings: Pick<Settings, "autoRegistration" | "workloadHealthChecks" | "workloadEntryGraceMs" | "podName">;
  store(): Pick<ConfigStore, "get">;
  readonly clock: Clock;
  readonly log: Log;
  note(event: RegistrationEvent): void;
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
  const source = new RegisteredWorkloads({
    group: (namespace, name) => templateOf(store().get(`WorkloadGroup/${namespace}/${name}`)),
    store: registrationFile(join(baseDir, "var/lib/istio/registered-workloads.json"), log),
    graceMs: settings.workloadEntryGraceMs,
    controller: settings.podName || "istiod",
    clock,
    log,
    note,
  });
  if (settings.autoRegistration) await source.restore();
  let first = true;
  return {
    source,
    seen(node, view, peer) {
      const claim = settings.autoRegistration ? claimOf(node, view) : undefined;
      if (claim === undefined) return;
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
    left: (peer) => source.leave(peer),
    committed({ added, changed, removed }) {
      if (!first && ![...added, ...changed, ...removed].some((key) => key.startsWith("WorkloadGroup/"))) return;
      first = false;
      source.groupsChanged();
    },
    health(peer, { error }) {
      if (!settings.workloadHealthChecks) return;
      if (!source.report(peer, { healthy: error === undefined, message: error?.message ?? "" }))
        log.debug({ peer: peer.address }, "the health of a workload that did not register itself is not looked at");
    },
  };
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
