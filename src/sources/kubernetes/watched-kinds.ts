import type { KindDef } from "../../config/kind-def.ts";
import { KINDS } from "../../config/kinds/index.ts";
import type { ObjectFields } from "../../kube/proto-fields.ts";
import { METADATA_FIELDS, NODE_FIELDS, POD_FIELDS, SERVICE_FIELDS, SLICE_FIELDS } from "./core-fields.ts";
import {
  nodePart,
  nothingMore,
  podPart,
  rootsPart,
  type Shape,
  secretPart,
  servicePart,
  shapeConfig,
  shapeCore,
  slicePart,
} from "./shape-object.ts";

/** A kind that is read from a cluster. */
export interface WatchedKind {
  readonly def: KindDef;
  /** Whether every API server has it, or only one where its CustomResourceDefinition is installed. */
  readonly served: "always" | "whenInstalled";
  /**
   * Where we may not read it, we do without: nothing that is served becomes wrong or empty by it. All others must have been read once before anything
   * is said: a policy that cannot be seen would be taken for one that is not there.
   */
  readonly dispensable: boolean;
  readonly fieldSelector?: string;
  /** What `shape` reads of its objects, where that is known and little. */
  readonly fields?: ObjectFields;
  /** Objects of it may be for another revision of the control plane (label `istio.io/rev`). */
  readonly revisioned: boolean;
  readonly shape: (version: string) => Shape;
}

/** What of Kubernetes' own kinds is read. Pods that have ended and Secrets of tools are not even sent to us. */
const CORE: Readonly<
  Record<string, Pick<WatchedKind, "fieldSelector" | "dispensable" | "fields"> & { readonly part: Parameters<typeof shapeCore>[1] }>
> = {
  Service: { part: servicePart, dispensable: false, fields: SERVICE_FIELDS },
  EndpointSlice: { part: slicePart, dispensable: false, fields: SLICE_FIELDS },
  Pod: {
    part: podPart,
    dispensable: false,
    fieldSelector: "status.phase!=Succeeded,status.phase!=Failed",
    fields: POD_FIELDS,
  },
  Node: { part: nodePart, dispensable: true, fields: NODE_FIELDS },
  Namespace: { part: nothingMore, dispensable: true, fields: METADATA_FIELDS },
  Secret: {
    part: secretPart,
    dispensable: true,
    fieldSelector: "type!=helm.sh/release.v1,type!=kubernetes.io/service-account-token",
  },
  ConfigMap: {
    part: rootsPart,
    dispensable: true,
    fieldSelector: "metadata.name!=kube-root-ca.crt,metadata.name!=istio-ca-root-cert",
  },
};

/** Kinds of others that are read as they are written, where they are installed. */
const FOREIGN: ReadonlySet<string> = new Set(["ReferenceGrant"]);

/** Every kind that is read from a cluster, from the table of kinds. */
export const WATCHED_KINDS: readonly WatchedKind[] = KINDS.flatMap((def) => watched(def) ?? []);

/**
 * What is read from other clusters: who serves there, machines among them, and what their gateways show. Their other configuration is their own. Where machines may not be
 * seen, there are none: nobody who reads clusters for their pods needs the right to.
 */
export const REMOTE_KINDS: readonly WatchedKind[] = WATCHED_KINDS.filter(({ def }) =>
  ["Service", "EndpointSlice", "Pod", "Node", "Namespace", "Secret", "WorkloadEntry"].includes(def.kind),
).map((kind) => (kind.def.kind === "WorkloadEntry" ? { ...kind, dispensable: true } : kind));

function watched(def: KindDef): WatchedKind | undefined {
  const core = Object.hasOwn(CORE, def.kind) ? CORE[def.kind] : undefined;
  if (core !== undefined) {
    const { part, dispensable, fieldSelector, fields } = core;
    return {
      def,
      served: "always",
      dispensable,
      revisioned: false,
      shape: () => shapeCore(def, part),
      ...(fieldSelector !== undefined && { fieldSelector }),
      ...(fields !== undefined && { fields }),
    };
  }
  if (def.custom === undefined && !FOREIGN.has(def.kind)) return undefined;
  return {
    def,
    served: "whenInstalled",
    dispensable: def.custom === undefined,
    revisioned: def.custom !== undefined,
    shape: (version) => shapeConfig(def, version),
  };
}
