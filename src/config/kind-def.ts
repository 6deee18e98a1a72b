import type { DescMessage } from "@bufbuild/protobuf";
import type { ConfigObject } from "./object.ts";
import type { SchemaRules } from "./parse/schema-rules.ts";
import type { FieldPath, Problem } from "./problem.ts";
import type { ProblemCode } from "./problem-codes.ts";

/** Collects what is wrong with one object while it is parsed and validated. Paths are relative to the document, e.g. ["spec", "hosts", 0]. */
export type Report = (code: ProblemCode, path: FieldPath, message: string) => void;

/** All there is to know of one kind. The table of kinds drives parsing, validation, CRDs and the command line. */
export interface KindDef<S = unknown> {
  /** Our name of the kind, unique among all: part of an object's identity. */
  readonly kind: string;
  /** The kind as documents write it, where another group has one of the same name (Gateway API's Gateway is `KubernetesGateway` here). Default: `kind`. */
  readonly writtenKind?: string;
  readonly group: string;
  /** Served versions, preferred first. */
  readonly versions: readonly string[];
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly scope: "Namespaced" | "Cluster";
  /** Field of the document that holds the content: "spec" for most; "" for kinds such as Secret or EndpointSlice whose fields stand at the top. */
  readonly body: "spec" | "";
  /**
   * What of the status counts, in few words; undefined where nothing does. Others write it for us to act upon; the rest of a status, and all
   * of it for most kinds, is not looked at, so that a heartbeat there changes nothing.
   */
  readonly observe?: (status: unknown) => string | undefined;
  /** Reads the body (JSON-shaped, may be undefined) strictly into the internal form; reports unknown fields and wrong types. */
  readonly parse: (body: unknown, report: Report) => S;
  /** Semantic rules, as Istio's admission webhook applies them. Not called when parsing found an error. */
  readonly validate: (object: ConfigObject<S>, report: Report) => void;
  /** What its CustomResourceDefinition is made from; absent for kinds that Kubernetes or others define. */
  readonly custom?: CustomResource;
}

/** How a kind is defined in Kubernetes. */
export interface CustomResource {
  /** Message of the spec. */
  readonly schema: DescMessage;
  /** Bounds that the message does not know. */
  readonly rules: SchemaRules;
  readonly needsSpec?: boolean;
  /** The version objects are stored in. Default: the preferred one. */
  readonly storedVersion?: string;
  /** What `kubectl get` shows beside the name: title and path, in order. */
  readonly columns?: Readonly<Record<string, string>>;
}

export type { Problem };
