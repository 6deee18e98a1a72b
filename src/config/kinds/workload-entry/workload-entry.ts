import { type WorkloadEntry, WorkloadEntrySchema } from "../../../gen/istio/networking/v1alpha3/workload_entry_pb.js";
import type { SchemaRules } from "../../parse/schema-rules.ts";
import { istioKind } from "../istio-kind.ts";
import { checkWorkloadEntry } from "./check-workload-entry.ts";

/** Bounds on an endpoint, below `at` (a path that is empty or ends with a dot). */
export const endpointRules = (at: string): SchemaRules => ({
  [`${at}address`]: { maxLength: 256 },
  [`${at}labels`]: { maxProperties: 256 },
  [`${at}locality`]: { maxLength: 2048 },
  [`${at}network`]: { maxLength: 2048 },
  [`${at}ports`]: { maxProperties: 128 },
  [`${at}serviceAccount`]: { maxLength: 253 },
});

/** What the condition `Healthy` says: `healthy`, `unhealthy`, or nothing. Health checks of the workload's agent write it. */
function healthCondition(status: unknown): string | undefined {
  const conditions = typeof status === "object" && status !== null && "conditions" in status ? status.conditions : undefined;
  const found: unknown = Array.isArray(conditions) ? conditions.find((one: unknown) => isHealthCondition(one)) : undefined;
  return isHealthCondition(found) ? (found.status === "True" ? "healthy" : "unhealthy") : undefined;
}

const isHealthCondition = (one: unknown): one is { readonly type: "Healthy"; readonly status: unknown } =>
  typeof one === "object" && one !== null && "type" in one && one.type === "Healthy" && "status" in one;

/** One workload outside Kubernetes. */
export const workloadEntry = istioKind({
  kind: "WorkloadEntry",
  group: "networking.istio.io",
  versions: ["v1", "v1beta1", "v1alpha3"],
  plural: "workloadentries",
  singular: "workloadentry",
  shortNames: ["we"],
  columns: { Age: ".metadata.creationTimestamp", Address: ".spec.address" },
  schema: WorkloadEntrySchema,
  rules: endpointRules(""),
  needsSpec: true,
  observe: healthCondition,
  check: (spec: WorkloadEntry, place) => checkWorkloadEntry(spec, { takesNames: true }, place),
});
