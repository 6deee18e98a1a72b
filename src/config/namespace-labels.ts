import type { Labels } from "../base/labels.ts";

/** Labels of a namespace: those of its object, where there is one, and the name, which Kubernetes puts on every namespace. */
export const namespaceLabels = (name: string, own: Labels | undefined): Labels => ({ ...own, "kubernetes.io/metadata.name": name });
