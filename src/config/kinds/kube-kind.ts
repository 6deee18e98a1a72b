import type { KindDef } from "../kind-def.ts";
import { type Fields, fieldsOf } from "../parse/fields.ts";

/** What makes up a Kubernetes kind that we read only in part. */
export interface KubeKind<S> extends Pick<KindDef, "kind" | "group" | "versions" | "plural" | "singular" | "shortNames"> {
  readonly scope?: KindDef["scope"];
  /** Picks what a mesh reads out of the document. */
  readonly read: (document: Fields) => S;
  /** Rules of ours, where something of ours would not take what Kubernetes takes. */
  readonly validate?: KindDef<S>["validate"];
}

/** Builds the table row of a Kubernetes kind: the API server has judged such objects, so little is validated but the types of what we read. */
export function kubeKind<S>(def: KubeKind<S>): KindDef<S> {
  return {
    kind: def.kind,
    group: def.group,
    versions: def.versions,
    plural: def.plural,
    singular: def.singular,
    shortNames: def.shortNames,
    scope: def.scope ?? "Namespaced",
    body: "",
    parse: (document, report) => def.read(fieldsOf(document, report, [])),
    validate: def.validate ?? (() => {}),
  };
}
