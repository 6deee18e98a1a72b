/** A WorkloadEntry that stands for a workload which registered itself. */
export interface EntryDocument {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly creationTimestamp: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
  };
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: { readonly conditions: readonly HealthCondition[] };
}

/** What the agent of a workload said of its health, as a condition of its WorkloadEntry. */
export interface HealthCondition {
  readonly type: "Healthy";
  readonly status: "True" | "False";
  readonly message?: string;
  readonly lastProbeTime: string;
  readonly lastTransitionTime: string;
}

/**
 * Where all who look at the same cluster, other replicas and other control planes, learn of workloads that are connected here. Nothing throws or waits: what
 * cannot be written now is tried again, and only the last of what was said of an entry counts.
 */
export interface RegistrationBoard {
  /** How the entry of a workload that registered here stands; undefined: it is gone. */
  post(place: EntryPlace, entry: EntryDocument | undefined): void;
  /** What the agent of a workload here said of its health, where somebody else wrote the entry; undefined: nothing is known any more. */
  report(place: EntryPlace, health: HealthCondition | undefined): void;
}

/** Which WorkloadEntry. */
export interface EntryPlace {
  readonly namespace: string;
  readonly name: string;
}

/** Annotations of such an entry, as Istio names them. */
export const REGISTRATION = {
  group: "istio.io/autoRegistrationGroup",
  controller: "istio.io/workloadController",
  connectedAt: "istio.io/connectedAt",
  disconnectedAt: "istio.io/disconnectedAt",
} as const;
