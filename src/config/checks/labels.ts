import { quote } from "../../base/quote.ts";
import { isDnsLabel } from "./host-name.ts";
import type { Place } from "./place.ts";

const NAME = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const LONGEST_NAME = 63;
const LONGEST_PREFIX = 253;

/** A Kubernetes label: `[prefix/]name` and a value, both short and plain. */
export function checkLabels(labels: Readonly<Record<string, string>>, place: Place): void {
  for (const [key, value] of Object.entries(labels)) {
    place.check("field.invalid", labelKeyFault(key));
    place.in(key).check("field.invalid", labelValueFault(value));
  }
}

/** What keeps a text from being the key of a label. */
export function labelKeyFault(key: string): string | undefined {
  const slash = key.indexOf("/");
  const name = slash === -1 ? key : key.slice(slash + 1);
  const prefix = slash === -1 ? undefined : key.slice(0, slash);
  const prefixOk = prefix === undefined || (prefix.length <= LONGEST_PREFIX && prefix.split(".").every(isDnsLabel));
  return prefixOk && name.length <= LONGEST_NAME && NAME.test(name) ? undefined : `${quote(key)} is not a label key`;
}

/** What keeps a text from being the value of a label. */
export const labelValueFault = (value: string): string | undefined =>
  value === "" || (value.length <= LONGEST_NAME && NAME.test(value)) ? undefined : `${quote(value)} is not a label value`;

/** Labels that choose workloads. Wildcards are refused, since selection compares texts; no labels at all choose everything. */
export function checkSelectorLabels(labels: Readonly<Record<string, string>>, place: Place): void {
  for (const [key, value] of Object.entries(labels)) {
    if (key === "") place.fault("field.invalid", "a selector must not have an empty key");
    if (key.includes("*") || value.includes("*")) place.in(key).fault("field.invalid", "a selector takes no wildcards");
    if (value.length > LONGEST_NAME) place.in(key).fault("field.invalid", `a label value has at most ${LONGEST_NAME} characters`);
  }
  if (Object.keys(labels).length === 0)
    place.fault("field.ineffective", "the selector names no labels, so it chooses every workload of the namespace");
}
