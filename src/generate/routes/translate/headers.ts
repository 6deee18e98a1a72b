import type { HeaderChange, HeaderChanges } from "../../../envoy/route/route-input.ts";
import type { Headers_HeaderOperations as HeaderOperations, Headers } from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { withKnownOperators } from "../../../model/format-operators.ts";

const isAuthority = (name: string): boolean => name.toLowerCase() === "host" || name.toLowerCase() === ":authority";

/** Envoy refuses a whole route table that changes one of these. */
const isInternal = (name: string): boolean => name.startsWith(":") || name.toLowerCase() === "host";

/** Changes of request headers. The host is no ordinary header in Envoy: setting it is a rewrite, see `hostRewriteOf`. */
export const requestChanges = (headers: Headers | undefined): HeaderChanges => changesOf(headers?.request);

export const responseChanges = (headers: Headers | undefined): HeaderChanges => changesOf(headers?.response);

/** The host that `headers.request` demands, if it does; `set` goes before `add`. */
export function hostRewriteOf(headers: Headers | undefined): string | undefined {
  const { set = {}, add = {} } = headers?.request ?? {};
  return [...Object.entries(set), ...Object.entries(add)].find(([name, value]) => isAuthority(name) && value !== "")?.[1];
}

export function joinChanges(first: HeaderChanges, second: HeaderChanges): HeaderChanges {
  return { add: [...first.add, ...second.add], remove: [...first.remove, ...second.remove] };
}

function changesOf(operations: HeaderOperations | undefined): HeaderChanges {
  if (operations === undefined) return { add: [], remove: [] };
  const change =
    (append: boolean) =>
    ([name, value]: [string, string]): HeaderChange => ({ name, value: withKnownOperators(value), append });
  const sorted = (entries: Record<string, string>): [string, string][] =>
    Object.entries(entries)
      .filter(([name]) => !isInternal(name))
      .sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    add: [...sorted(operations.set).map(change(false)), ...sorted(operations.add).map(change(true))],
    remove: operations.remove.filter((name) => !isInternal(name)),
  };
}
