import type { Clock } from "../base/clock.ts";
import { createSlice } from "../base/slice.ts";
import { formatOrigin, type Origin } from "../config/object.ts";
import type { ObjectReport } from "../config/status/object-report.ts";
import { wantedStatus } from "../config/status/wanted-status.ts";
import type { HttpRoute } from "../debug/http-route.ts";
import { isoTime } from "../debug/object-origin.ts";
import type { ObjectReports } from "./object-reports.ts";

export interface StatusPageOptions {
  readonly reports: Pick<ObjectReports, "look">;
  /** Names of those that objects come from. */
  readonly sources: () => readonly string[];
  readonly origin: (key: string) => Origin | undefined;
  readonly clock: Pick<Clock, "now" | "monotonic">;
}

/** The status of each configuration object as this replica sees it, also of those that come from files and have nowhere to write it to. */
export const statusRoute = ({ reports, sources, origin, clock }: StatusPageOptions): HttpRoute => ({
  path: "/debug/status",
  open: false,
  about:
    "whether each configuration object is accepted, and which connected proxies have acknowledged it; ?namespace=ns and ?kind=VirtualService narrow it",
  async answer(query) {
    const [namespace, kind] = [query.get("namespace"), query.get("kind")];
    const isWanted = ({ ref }: ObjectReport): boolean =>
      (namespace === null || ref.namespace === namespace) && (kind === null || ref.kind === kind);
    const pause = createSlice(clock);
    const wanted: { readonly source: string; readonly report: ObjectReport }[] = [];
    let proxies = 0;
    for (const source of sources()) {
      const look = reports.look(source);
      proxies = look.proxies;
      for (const report of look.objects) {
        if (isWanted(report)) wanted.push({ source, report });
        const rest = pause();
        if (rest !== undefined) await rest;
      }
    }
    wanted.sort(({ report: a }, { report: b }) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
    const now = clock.now();
    const objects = function* (): Generator<unknown, void> {
      for (const { source, report } of wanted) {
        const at = origin(report.key);
        const place = at?.file !== undefined && { at: formatOrigin(at) };
        yield { object: report.key, source, ...place, status: statusNow(report, now) };
      }
    };
    return { status: 200, body: { time: isoTime(now), proxies, objects: objects() } };
  },
});

/** When conditions turned is known only where they are written. */
function statusNow(report: ObjectReport, now: number): unknown {
  const { conditions = [], ...rest } = wantedStatus(report, undefined, now) ?? {};
  return { ...rest, conditions: conditions.map((one) => ({ ...(one as object), lastTransitionTime: undefined })) };
}
