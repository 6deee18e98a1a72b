import { IstioStatusSchema } from "../../gen/istio/meta/v1alpha1/status_pb.js";
import type { KindDef } from "../kind-def.ts";
import { KINDS } from "../kinds/index.ts";
import { KIND_RULES } from "./cel-rules.ts";
import type { JsonSchema } from "./json-schema.ts";
import { messageSchema } from "./message-schema.ts";
import { withBounds, withValidations } from "./schema-bounds.ts";

/** A CustomResourceDefinition of `apiextensions.k8s.io/v1`, as far as we use it. */
export interface CustomResourceDefinition {
  readonly apiVersion: "apiextensions.k8s.io/v1";
  readonly kind: "CustomResourceDefinition";
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly group: string;
    readonly names: {
      readonly kind: string;
      readonly listKind: string;
      readonly plural: string;
      readonly singular: string;
      readonly shortNames?: readonly string[];
      readonly categories: readonly string[];
    };
    readonly scope: KindDef["scope"];
    readonly versions: readonly CustomResourceVersion[];
  };
}

export interface CustomResourceVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly schema: { readonly openAPIV3Schema: JsonSchema };
  readonly subresources: { readonly status: Readonly<Record<string, never>> };
  readonly additionalPrinterColumns?: readonly PrinterColumn[];
}

export interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "date";
  readonly jsonPath: string;
}

/** A kind that is defined by us, not by Kubernetes. */
export type CustomKind = KindDef & { readonly custom: NonNullable<KindDef["custom"]> };

const isCustom = (def: KindDef): def is CustomKind => def.custom !== undefined;

/** The definitions of all of Istio's kinds, in the order of the table. */
export const customResourceDefinitions = (): readonly CustomResourceDefinition[] => KINDS.filter(isCustom).map(customResourceDefinition);

/** The definition of one kind. All versions have one schema: they are one message. */
export function customResourceDefinition(def: CustomKind): CustomResourceDefinition {
  const { kind, group, plural, singular, shortNames, scope } = def;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular,
        ...(shortNames.length > 0 && { shortNames }),
        categories: ["istio-io", group.replaceAll(".", "-")],
      },
      scope,
      versions: versionsOf(def),
    },
  };
}

/** Most preferred first; the order of the API server is by stability, which is the same. */
function versionsOf({ kind, versions, custom }: CustomKind): readonly CustomResourceVersion[] {
  const stored = custom.storedVersion ?? versions[0];
  const openAPIV3Schema = documentSchema(kind, custom);
  const columns = Object.entries(custom.columns ?? {}).map(
    ([name, jsonPath]): PrinterColumn => ({ name, type: columnType(jsonPath), jsonPath }),
  );
  return versions.map((name) => ({
    name,
    served: true,
    storage: name === stored,
    schema: { openAPIV3Schema },
    subresources: { status: {} },
    ...(columns.length > 0 && { additionalPrinterColumns: columns }),
  }));
}

const columnType = (path: string): PrinterColumn["type"] => (path === ".metadata.creationTimestamp" ? "date" : "string");

/** Others may write what they like into a status; what we know of it is described. */
function documentSchema(kind: string, { schema, rules, needsSpec }: CustomKind["custom"]): JsonSchema {
  return {
    type: "object",
    ...(needsSpec === true && { required: ["spec"] }),
    properties: {
      spec: withValidations(withBounds(messageSchema(schema), rules), KIND_RULES[kind] ?? {}),
      status: { ...messageSchema(IstioStatusSchema), "x-kubernetes-preserve-unknown-fields": true },
    },
  };
}
