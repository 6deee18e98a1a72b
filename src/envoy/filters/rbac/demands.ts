import type { AttributeMatch } from "./rbac-input.ts";

/** What one match demands: that its attribute is one of the values, and that it is none of the others. */
export function demandsOf<A, T>(
  match: AttributeMatch<A>,
  isOneOf: (attribute: A, values: readonly string[]) => T,
  not: (demand: T) => T,
): readonly T[] {
  const { attribute, values, notValues } = match;
  return [
    ...(values.length > 0 ? [isOneOf(attribute, values)] : []),
    ...(notValues.length > 0 ? [not(isOneOf(attribute, notValues))] : []),
  ];
}
