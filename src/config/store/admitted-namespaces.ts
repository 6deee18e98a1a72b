import { type LabelSelector, type Labels, selectsLabels } from "../../base/labels.ts";
import { namespaceLabels } from "../namespace-labels.ts";

/**
 * Namespaces whose objects count (MeshConfig `discoverySelectors`): those that some selector takes, all where there is no selector.
 * What belongs to no namespace always counts.
 */
export interface AdmittedNamespaces {
  admits(namespace: string): boolean;
}

/** `labelsOf` gives the labels of a Namespace object, where there is one. */
export function admittedNamespaces(
  selectors: readonly LabelSelector[],
  labelsOf: (namespace: string) => Labels | undefined,
): AdmittedNamespaces {
  if (selectors.length === 0) return { admits: () => true };
  const known = new Map<string, boolean>();
  return {
    admits(namespace) {
      if (namespace === "") return true;
      const answer = known.get(namespace) ?? selects(selectors, namespaceLabels(namespace, labelsOf(namespace)));
      known.set(namespace, answer);
      return answer;
    },
  };
}

const selects = (selectors: readonly LabelSelector[], labels: Labels): boolean =>
  selectors.some((selector) => selectsLabels(selector, labels));
