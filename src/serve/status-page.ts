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
  readonly now: () => number;
}

/** The status of each configuration object as this replica sees it, also of those that come from files and have nowhere to write it to. */
export const statusRoute = ({ reports, sources, origin, now }: StatusPageOptions): HttpRoute => ({
  path: "/debug/status",
  open: false,
  about:
    "whether each configuration object is accepted, and which connected proxies have acknowledged it; ?namespace=ns and ?kind=VirtualService narrow it",
  answer(query) {
    const [namespace, kind] = [query.get("namespace"), query.get("kind")];
    const isWanted = ({ ref }: ObjectReport): boolean =>
      (namespace === null || ref.namespace === namespace) && (kind === null || ref.kind === kind);
    const looks = sources().map((source) => ({ source, ...reports.look(source) }));
    const objects = looks.flatMap((look) =>
      [...look.objects].filter(isWanted).map((report) => {
        const at = origin(report.key);
        return {
          object: report.key,
          source: look.source,
          ...(at?.file !== undefined && { at: formatOrigin(at) }),
          status: statusNow(report, now()),
        };
      }),
    );
    objects.sort((a, b) => (a.object < b.object ? -1 : a.object > b.object ? 1 : 0));
    return { status: 200, body: { time: isoTime(now()), proxies: looks[0]?.proxies ?? 0, objects } };
  },
});

/** When conditions turned is known only where they are written. */
function statusNow(report: ObjectReport, now: number): unknown {
  const { conditions = [], ...rest } = wantedStatus(report, undefined, now) ?? {};
  return { ...rest, conditions: conditions.map((one) => ({ ...(one as object), lastTransitionTime: undefined })) };
}
