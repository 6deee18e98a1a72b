import { canonicalRevision, canonicalService, UNKNOWN, type WorkloadLabel } from "../../model/standard-metrics.ts";
import { eachField } from "../../wire/field-reader.ts";
import type { Metadata } from "../node-identity.ts";

/** A workload as metrics name it, by the ends of the labels' names. */
export type WorkloadFacts = Readonly<Record<WorkloadLabel, string>>;

/** A workload of which nothing is known. */
export const NOBODY: WorkloadFacts = everywhere(UNKNOWN);

/** The same text for all that can be said of a workload. */
export function everywhere(text: string): WorkloadFacts {
  return {
    workload: text,
    workload_namespace: text,
    canonical_service: text,
    canonical_revision: text,
    app: text,
    version: text,
    cluster: text,
  };
}

/** Facts with Istio's words for what is not said: a workload that is known has the revision `latest` where no label names another. */
export const factsOf = (said: Partial<WorkloadFacts>): WorkloadFacts => ({
  workload: said.workload || UNKNOWN,
  workload_namespace: said.workload_namespace || UNKNOWN,
  canonical_service: said.canonical_service || said.workload || UNKNOWN,
  canonical_revision: said.canonical_revision || (said.workload ? "latest" : UNKNOWN),
  app: said.app || UNKNOWN,
  version: said.version || UNKNOWN,
  cluster: said.cluster || UNKNOWN,
});

/** Endpoints carry `workload;namespace;canonical service;canonical revision;cluster`; the labels `app` and `version` are mostly the same as the third and fourth. */
export function endpointFacts(text: string): WorkloadFacts {
  const [workload = "", namespace = "", service = "", revision = "", cluster = ""] = text.split(";");
  if (workload === "") return NOBODY;
  return factsOf({
    workload,
    workload_namespace: namespace,
    canonical_service: service,
    canonical_revision: revision,
    app: service,
    version: revision,
    cluster,
  });
}

const FIELDS: Readonly<Record<number, WorkloadLabel>> = {
  1: "workload",
  2: "workload_namespace",
  3: "canonical_service",
  4: "canonical_revision",
  5: "cluster",
  6: "app",
  7: "version",
};

/** Reads an `istio.v1.PeerWorkload`. */
export function readPeerWorkload(bytes: Uint8Array): WorkloadFacts {
  const said: Partial<Record<WorkloadLabel, string>> = {};
  eachField(bytes, (field, reader) => {
    const name = FIELDS[field];
    if (name === undefined) return false;
    said[name] = reader.string();
    return true;
  });
  return factsOf(said);
}

/** Facts of a workload as its own node says them: what counts until the control plane says what others see. */
export function nodeFacts(metadata: Metadata): WorkloadFacts {
  const labels = textsOf(metadata.LABELS);
  const { WORKLOAD_NAME: owner, NAME: name, NAMESPACE: namespace, CLUSTER_ID: cluster } = textsOf(metadata);
  const workload = owner || name || "";
  return factsOf({
    workload,
    workload_namespace: namespace ?? "",
    canonical_service: canonicalService(labels, workload),
    canonical_revision: canonicalRevision(labels),
    app: labels.app ?? "",
    version: labels.version ?? "",
    cluster: cluster ?? "",
  });
}

function textsOf(value: unknown): Readonly<Record<string, string>> {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}
