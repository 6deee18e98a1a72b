import { defined } from "../../parse/defined.ts";
import { kubeKind } from "../kube-kind.ts";

/** What a mesh reads of an IngressClass: who handles its Ingresses. */
export interface IngressClass {
  readonly controller?: string;
}

export const ingressClass = kubeKind<IngressClass>({
  kind: "IngressClass",
  group: "networking.k8s.io",
  versions: ["v1"],
  plural: "ingressclasses",
  singular: "ingressclass",
  shortNames: [],
  scope: "Cluster",
  read: (document) => defined({ controller: document.object("spec").text("controller") }),
});
