import type { Log } from "../base/log.ts";
import { formatPath, type Problem } from "../config/problem.ts";
import type { ChangeSummary, ConfigStore } from "../config/store/store-types.ts";
import { shortTypeName } from "../wire/type-urls.ts";
import type { PushCause } from "../xds/metrics.ts";
import type { RoundSummary } from "../xds/rounds.ts";
import type { ControlPlaneMetrics } from "./metrics.ts";

/** Names what changed in a few words: `VirtualService/shop/cart and 12 others`. Objects that changed name the change best. */
export function describeChange({ changed, added, removed }: ChangeSummary): string {
  const keys = [...changed, ...added, ...removed];
  const [first] = keys;
  if (first === undefined) return "nothing";
  return keys.length === 1 ? first : `${first} and ${keys.length - 1} others`;
}

/** Kinds by which services and where they run are known; every other kind is configuration. */
const CAUSES: Readonly<Record<string, PushCause>> = {
  Service: "service",
  ServiceEntry: "service",
  EndpointSlice: "endpoint",
  Endpoints: "endpoint",
  Pod: "endpoint",
  Node: "endpoint",
  WorkloadEntry: "endpoint",
  Secret: "secret",
  ConfigMap: "secret",
  Namespace: "namespace",
};
/** What reaches furthest counts. */
const BY_REACH: readonly PushCause[] = ["config", "service", "namespace", "endpoint", "secret"];

/** What kind of change a commit is. */
export function causeOf({ changed, added, removed }: ChangeSummary): PushCause {
  const causes = new Set([...changed, ...added, ...removed].map((key) => CAUSES[key.slice(0, key.indexOf("/"))] ?? "config"));
  return BY_REACH.find((cause) => causes.has(cause)) ?? "config";
}

/** Counts what a commit changed under Istio's names. */
export function countChange(metrics: ControlPlaneMetrics, { added, changed, removed }: ChangeSummary): void {
  for (const [keys, event] of [[added, "add"] as const, [changed, "update"] as const, [removed, "delete"] as const]) {
    const counts = new Map<string, number>();
    for (const key of keys) {
      const kind = key.slice(0, key.indexOf("/"));
      counts.set(kind, (counts.get(kind) ?? 0) + 1);
    }
    for (const [kind, count] of counts) metrics.configEvents(kind, event, count);
  }
}

/** Says of each document that was found invalid where and why, and what holds in its place. */
export function logBroken(log: Log, broken: readonly string[], store: Pick<ConfigStore, "problems" | "status">): void {
  if (broken.length === 0) return;
  const errors = store.problems().filter(({ level }) => level === "error");
  const byFile = Map.groupBy(
    errors.sort((a, b) => (a.line ?? 0) - (b.line ?? 0)),
    ({ file = "" }) => file,
  );
  for (const key of broken) {
    const status = store.status(key);
    const problem = status?.problems.find(({ level }) => level === "error") ?? faultFrom(key, byFile);
    const why = problem === undefined ? {} : { at: placeOf(problem), problem: sentenceOf(problem) };
    log.warn(
      { object: key, ...why },
      `a document is invalid; ${status?.state === "stale" ? "its last good version stays in force" : "it is left out"}`,
    );
  }
}

/** What is wrong with a document that has no readable name, by its place: the first fault from where it begins is its own. */
function faultFrom(place: string, byFile: ReadonlyMap<string, readonly Problem[]>): Problem | undefined {
  const colon = place.lastIndexOf(":");
  const begins = Number(place.slice(colon + 1));
  return byFile.get(place)?.[0] ?? byFile.get(place.slice(0, colon))?.find(({ line = 0 }) => line >= begins);
}

const placeOf = ({ file = "", line }: Problem): string => (line === undefined ? file : `${file}:${line}`);
const sentenceOf = ({ path, message }: Problem): string => (path.length === 0 ? message : `${formatPath(path)}: ${message}`);

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
