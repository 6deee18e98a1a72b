import type { Labels } from "../base/labels.ts";
import { type ConfigObject, objectKey } from "../config/object.ts";
import type { WorkloadEntry } from "../gen/istio/networking/v1alpha3/workload_entry_pb.js";
import type { WorkloadGroup } from "../gen/istio/networking/v1alpha3/workload_group_pb.js";
import type { Health } from "../model/endpoint.ts";
import type { RawMember } from "./member.ts";
import type { Placement } from "./placement.ts";
import { hasPlace, workloadMember } from "./service-entry.ts";

const GROUP = "istio.io/autoRegistrationGroup";

/** Key of the WorkloadGroup that a WorkloadEntry belongs to, where it names one. */
export function groupKeyOf(object: ConfigObject<WorkloadEntry>): string | undefined {
  const group = object.annotations[GROUP];
  return group === undefined || group === "" ? undefined : `WorkloadGroup/${object.namespace}/${group}`;
}

/** Labels of a WorkloadEntry: those of its metadata win over those of its spec, as in Istio; its group's come last. */
export function workloadEntryLabels(object: ConfigObject<WorkloadEntry>, group: ConfigObject<WorkloadGroup> | undefined): Labels {
  return { ...group?.spec.template?.labels, ...group?.spec.metadata?.labels, ...object.spec.labels, ...object.labels };
}

/** What its agent says of its health; undefined while it says nothing. */
interface Reported {
  readonly reported: () => boolean | undefined;
}

/** A WorkloadEntry as a member. What it does not say itself it takes from its group's template. */
export function workloadEntryMember(
  object: ConfigObject<WorkloadEntry>,
  group: ConfigObject<WorkloadGroup> | undefined,
  { reported, ...placement }: Placement & Reported,
): RawMember | undefined {
  const { spec } = object;
  const template = group?.spec.template;
  const labels = workloadEntryLabels(object, group);
  const filled = {
    ...spec,
    ports: { ...template?.ports, ...spec.ports },
    network: spec.network || (template?.network ?? ""),
    locality: spec.locality || (template?.locality ?? ""),
    weight: spec.weight || (template?.weight ?? 0),
    serviceAccount: spec.serviceAccount || (template?.serviceAccount ?? ""),
  };
  // What metrics call it. All machines that joined a group are one workload, as all pods of a Deployment are; so Istio has it.
  const workload = object.annotations[GROUP] || (labels["service.istio.io/workload-name"] ?? object.name);
  const identity = { origin: "workloadEntry", labels, workload, namespace: object.namespace, objectKey: objectKey(object) } as const;
  const member = workloadMember(filled, identity, placement);
  return hasPlace(member) ? { ...member, health: healthOf(object, reported) } : undefined;
}

/** Whether the health of a workload is checked by its agent. */
export const isHealthChecked = ({ annotations }: Pick<ConfigObject, "annotations">): boolean =>
  ["true", "1", "t"].includes((annotations["proxy.istio.io/health-checks-enabled"] ?? "").toLowerCase());

/** A workload whose health is checked is taken for ill until its agent or its status says it is well, as in Istio; all others are well. */
function healthOf(object: ConfigObject<WorkloadEntry>, reported: Reported["reported"]): Health {
  if (!isHealthChecked(object)) return "healthy";
  return (reported() ?? object.observed === "healthy") ? "healthy" : "unhealthy";
}
