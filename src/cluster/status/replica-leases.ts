import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { Reflector } from "../../kube/reflector.ts";
import type { KubeObject, ResourceType } from "../../kube/resource-type.ts";
import { type ReplicaReport, readReplicaReport } from "./replica-report.ts";

export interface ReplicaLeasesOptions {
  readonly client: Pick<KubeClient, "listEach" | "watch" | "patch" | "delete">;
  /** Of the control plane. */
  readonly namespace: string;
  /** Of this replica: its pod. */
  readonly holder: string;
  readonly clock: Clock;
  readonly log: Log;
}

const LEASES: ResourceType = { group: "coordination.k8s.io", version: "v1", plural: "leases", namespaced: true };
const LABEL = "istiod.istio.io/replica";
const ANNOTATION = "istiod.istio.io/status-report";
const RENEW_MS = 10_000;
/** One that has not renewed for this long is gone, and its proxies with it. */
const LOST_MS = 35_000;
/** By then its Lease is litter. */
const LITTER_MS = 600_000;
/** Between two reports, however much changes. */
const PACE_MS = 1_000;

interface Heard {
  readonly report: ReplicaReport | undefined;
  readonly renewTime: string;
  /** When this renewal was first seen, by our own clock. */
  readonly at: number;
}

/**
 * Replicas tell each other of their proxies, each in a Lease of its own: what it has to say stands in an annotation, and renewing it is the sign that it
 * still lives. So a replica that dies is forgotten without anybody having to ask it.
 */
export class ReplicaLeases {
  readonly #options: ReplicaLeasesOptions;
  readonly #name: string;
  readonly #heard = new Map<string, Heard>();
  readonly #reflector: Reflector<Omit<Heard, "at">>;
  #told: { readonly text: string; readonly at: number } | undefined;
  #fault = "";

  constructor(options: ReplicaLeasesOptions, changed: () => void) {
    const { client, namespace, holder, clock, log } = options;
    this.#options = options;
    this.#name = leaseName(holder);
    this.#reflector = new Reflector({
      client,
      type: LEASES,
      selection: { namespace, labelSelector: LABEL },
      clock,
      log,
      shape: heardIn,
      changed: ({ upserts, deletes }) => {
        for (const [key, heard] of upserts) this.#hear(key.slice(namespace.length + 1), heard);
        for (const key of deletes) this.#heard.delete(key.slice(namespace.length + 1));
        changed();
      },
    });
  }

  /** Follows the others until the signal aborts; then says that this one is gone. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#reflector.run(signal);
    const { client, namespace } = this.#options;
    if (this.#told !== undefined) await client.delete(LEASES, { namespace, name: this.#name }).catch(() => undefined);
  }

  /** Whether it is known what the others say, or that it cannot be known. */
  get isReady(): boolean {
    const { synced, fault } = this.#reflector.state;
    return synced || fault?.isForbidden === true;
  }

  /** What other replicas that live say, by name. */
  others(): ReadonlyMap<string, ReplicaReport> {
    const now = this.#options.clock.monotonic();
    const found = new Map<string, ReplicaReport>();
    for (const [name, { report, at }] of this.#heard)
      if (name !== this.#name && report !== undefined && now - at < LOST_MS) found.set(name, report);
    return found;
  }

  /** Says what this replica has to say, where that is news or the last time is long ago. Gives how long to wait before the next. */
  async tell(report: ReplicaReport, signal: AbortSignal): Promise<number> {
    const { client, namespace, holder, clock } = this.#options;
    const text = JSON.stringify(report);
    const since = clock.monotonic() - (this.#told?.at ?? Number.NEGATIVE_INFINITY);
    if (this.#told?.text === text && since < RENEW_MS) return RENEW_MS - since;
    if (since < PACE_MS) return PACE_MS - since;
    const now = `${new Date(clock.now()).toISOString().slice(0, -1)}000Z`;
    const body = {
      apiVersion: "coordination.k8s.io/v1",
      kind: "Lease",
      metadata: { name: this.#name, namespace, labels: { [LABEL]: "true" }, annotations: { [ANNOTATION]: text } },
      spec: { holderIdentity: holder, leaseDurationSeconds: Math.ceil(LOST_MS / 1_000), renewTime: now },
    };
    try {
      await client.patch(LEASES, { namespace, name: this.#name }, { as: "apply", body, force: true, fieldManager: "istiod", signal });
      this.#fault = "";
    } catch (error) {
      if (!signal.aborted) this.#tellFault(messageOf(error));
    }
    this.#told = { text, at: clock.monotonic() };
    return RENEW_MS;
  }

  /** Removes what replicas left that are long gone. */
  async tidy(signal: AbortSignal): Promise<void> {
    const { client, namespace, clock } = this.#options;
    for (const [name, { at }] of [...this.#heard]) {
      if (name === this.#name || clock.monotonic() - at < LITTER_MS) continue;
      this.#heard.delete(name);
      await client.delete(LEASES, { namespace, name }, { signal }).catch(() => undefined);
    }
  }

  #hear(name: string, { report, renewTime }: Omit<Heard, "at">): void {
    const known = this.#heard.get(name);
    const at = known?.renewTime === renewTime ? known.at : this.#options.clock.monotonic();
    this.#heard.set(name, { report, renewTime, at });
  }

  #tellFault(reason: string): void {
    if (reason !== this.#fault) this.#options.log.warn({ lease: this.#name, reason }, "other replicas cannot be told of the proxies here");
    this.#fault = reason;
  }
}

function heardIn({ metadata, spec }: KubeObject): Omit<Heard, "at"> {
  const { renewTime } = (spec ?? {}) as { readonly renewTime?: string };
  return { report: readReplicaReport(metadata.annotations?.[ANNOTATION] ?? ""), renewTime: renewTime ?? "" };
}

/** Names of objects are lower case. */
const leaseName = (holder: string): string => `istiod-replica-${holder.toLowerCase().replaceAll(/[^a-z0-9.-]/g, "-")}`.slice(0, 253);
