import { kubeKind } from "../kube-kind.ts";

/** A Namespace matters by its labels and annotations, which are those of the object. */
export type Namespace = Readonly<Record<never, never>>;

export const namespace = kubeKind<Namespace>({
  kind: "Namespace",
  group: "",
  versions: ["v1"],
  plural: "namespaces",
  singular: "namespace",
  shortNames: ["ns"],
  scope: "Cluster",
  read: () => ({}),
});
