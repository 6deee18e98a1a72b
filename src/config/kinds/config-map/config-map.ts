import { kubeKind } from "../kube-kind.ts";

/** The texts of a ConfigMap. */
export interface ConfigMap {
  readonly data: Readonly<Record<string, string>>;
}

export const configMap = kubeKind<ConfigMap>({
  kind: "ConfigMap",
  group: "",
  versions: ["v1"],
  plural: "configmaps",
  singular: "configmap",
  shortNames: ["cm"],
  read: (document) => ({ data: document.map("data") }),
});
