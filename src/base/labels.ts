/** Labels of a workload or of an object. */
export type Labels = Readonly<Record<string, string>>;

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
