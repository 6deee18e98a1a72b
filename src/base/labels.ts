/** Labels of a workload or of an object. */
export type Labels = Readonly<Record<string, string>>;

/** Shared by all who have none. */
export const NO_LABELS: Labels = Object.freeze({});

/** Whether `labels` carry every pair of `selector`. An empty selector takes everything. */
export function matchesLabels(selector: Labels, labels: Labels): boolean {
  for (const key in selector) {
    if (labels[key] !== selector[key]) return false;
  }
  return true;
}

/** The pairs as `key=value`, sorted: the form used for keys and in messages. */
export const labelPairs = (labels: Labels): readonly string[] =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .sort();

/** A selector as Kubernetes writes it: all pairs and all conditions must hold; without any it takes everything. */
export interface LabelSelector {
  readonly matchLabels: Labels;
  readonly matchExpressions: readonly LabelCondition[];
}

/** One condition of such a selector. */
export interface LabelCondition {
  readonly key: string;
  /** One of `In`, `NotIn`, `Exists`, `DoesNotExist`; another never holds. */
  readonly operator: string;
  readonly values: readonly string[];
}

/** Whether a selector takes something with these labels. */
export const selectsLabels = ({ matchLabels, matchExpressions }: LabelSelector, labels: Labels): boolean =>
  matchesLabels(matchLabels, labels) && matchExpressions.every((condition) => holds(condition, labels));

function holds({ key, operator, values }: LabelCondition, labels: Labels): boolean {
  // Labels may be called what objects inherit, such as `constructor`.
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    default:
      return false;
  }
}

/** What is wrong with a condition of a selector, if anything. */
export function conditionFault({ key, operator, values }: LabelCondition): string | undefined {
  if (key === "") return "a condition needs the key of a label";
  if (operator === "In" || operator === "NotIn") return values.length > 0 ? undefined : `${operator} needs values`;
  if (operator === "Exists" || operator === "DoesNotExist") return values.length === 0 ? undefined : `${operator} takes no values`;
  return `${JSON.stringify(operator)} is none of In, NotIn, Exists and DoesNotExist`;
}
