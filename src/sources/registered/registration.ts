import { type EntryDocument, type HealthCondition, REGISTRATION } from "./registration-board.ts";

/** What a group gives each of its members, taken from a WorkloadGroup. */
export interface GroupTemplate {
  /** Labels of the template, with those of the group's metadata over them. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly ports: Readonly<Record<string, number>>;
  readonly serviceAccount: string;
  readonly network: string;
  readonly locality: string;
  readonly weight: number;
}

/** What a workload says of itself when it connects, as far as it was proved or believed. */
export interface Claim {
  readonly namespace: string;
  readonly group: string;
  /** Proved. */
  readonly serviceAccount: string;
  readonly address: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly network: string;
  readonly locality: string;
  /** Its agent looks after its health and will tell. */
  readonly healthChecked: boolean;
}

/** What an agent reported last. */
export interface ReportedHealth {
  readonly healthy: boolean;
  readonly message: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** A workload that registered itself. Plain JSON: it is kept on disk in this form. */
export interface Registration {
  readonly name: string;
  readonly claim: Claim;
  /** Absent while its group is. */
  readonly template?: GroupTemplate;
  readonly registeredAt: number;
  /** One of the two is there. */
  readonly connectedAt?: number;
  readonly disconnectedAt?: number;
  readonly health?: ReportedHealth;
}

const LONGEST_NAME = 253;

/** The name of the WorkloadEntry, as Istio makes it: group, address and network; a long one loses its beginning. */
export const registrationName = ({ group, address, network }: Pick<Claim, "group" | "address" | "network">): string =>
  [group, address.replaceAll(":", "-"), ...(network === "" ? [] : [network])]
    .join("-")
    .slice(-LONGEST_NAME)
    .replace(/^[^A-Za-z0-9]+/, "");

/** The WorkloadEntry: the group's template, and over it what the workload says of itself, as Istio has it. */
export function documentOf(registration: Registration, controller: string): EntryDocument | undefined {
  const { name, claim, template, registeredAt, health } = registration;
  if (template === undefined) return undefined;
  const { "istio-locality": _, ...labels } = { ...template.labels, ...claim.labels };
  const checked = claim.healthChecked || health !== undefined;
  const { serviceAccount, address } = claim;
  const network = claim.network || template.network;
  const locality = claim.locality || template.locality;
  return {
    apiVersion: "networking.istio.io/v1",
    kind: "WorkloadEntry",
    metadata: {
      name,
      namespace: claim.namespace,
      creationTimestamp: isoTime(registeredAt),
      labels,
      annotations: {
        ...template.annotations,
        [REGISTRATION.group]: claim.group,
        [REGISTRATION.controller]: controller,
        ...(registration.connectedAt !== undefined && { [REGISTRATION.connectedAt]: isoTime(registration.connectedAt) }),
        ...(registration.disconnectedAt !== undefined && { [REGISTRATION.disconnectedAt]: isoTime(registration.disconnectedAt) }),
        ...(checked && { "proxy.istio.io/health-checks-enabled": "true" }),
      },
    },
    spec: {
      address,
      labels,
      serviceAccount,
      ...(Object.keys(template.ports).length > 0 && { ports: template.ports }),
      ...(network !== "" && { network }),
      ...(locality !== "" && { locality }),
      ...(template.weight > 0 && { weight: template.weight }),
    },
    ...(health !== undefined && { status: { conditions: [conditionOf(health)] } }),
  };
}

/** What an agent reported, as a condition of a WorkloadEntry. */
export const conditionOf = ({ healthy, message, at }: ReportedHealth): HealthCondition => ({
  type: "Healthy",
  status: healthy ? "True" : "False",
  ...(message !== "" && { message }),
  lastProbeTime: isoTime(at),
  lastTransitionTime: isoTime(at),
});

const isoTime = (ms: number): string => new Date(ms).toISOString();
