import type { Log } from "../base/log.ts";
import type { ChangeSummary } from "../config/store/store-types.ts";
import { shortTypeName } from "../wire/type-urls.ts";
import type { RoundSummary } from "../xds/rounds.ts";
import type { ControlPlaneMetrics } from "./metrics.ts";

/** Names what changed in a few words: `VirtualService/shop/cart and 12 others`. Objects that changed name the change best. */
export function describeChange({ changed, added, removed }: ChangeSummary): string {
  const keys = [...changed, ...added, ...removed];
  const [first] = keys;
  if (first === undefined) return "nothing";
  return keys.length === 1 ? first : `${first} and ${keys.length - 1} others`;
}

/** Counts what a commit changed under Istio's names. */
export function countChange(metrics: ControlPlaneMetrics, { added, changed, removed }: ChangeSummary): void {
  const kindOf = (key: string): string => key.slice(0, key.indexOf("/"));
  for (const key of added) metrics.configEvent(kindOf(key), "add");
  for (const key of changed) metrics.configEvent(kindOf(key), "update");
  for (const key of removed) metrics.configEvent(kindOf(key), "delete");
}

/** The one line each applied change gets: what, how many resources and proxies, how long until the last one had it. */
export function logRound(log: Log, { reason, resources, proxies, ms, rejections, unsettled }: RoundSummary): void {
  const sent = [...resources].map(([typeUrl, count]) => `${shortTypeName(typeUrl)}:${count}`).join(",");
  const fields = {
    object: reason,
    resources: sent || "none",
    proxies,
    ms: Math.round(ms),
    rejections,
    ...(unsettled > 0 && { unsettled }),
  };
  if (rejections > 0) log.warn(fields, "change applied, with rejections");
  else log.info(fields, "change applied");
}
