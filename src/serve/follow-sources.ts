import type { ChangeSummary } from "../config/store/store-types.ts";
import { fileSource } from "../sources/files/file-source.ts";
import { createDebounce, type Debounce } from "../xds/debounce.ts";
import { causeOf, countChange, describeChange, logBroken } from "./change-log.ts";
import { clusterSource } from "./cluster-link.ts";
import type { KeptDocuments } from "./kept-documents.ts";
import { createObjectReports, type ObjectReports } from "./object-reports.ts";
import type { OpenedStore, StoreOptions } from "./open-store.ts";
import type { OpenedStreams } from "./open-streams.ts";
import { createOutside, type Outside } from "./outside.ts";
import { createProblemReport, type ProblemReport } from "./problem-report.ts";
import { createRunningSources, type RunningSources, type SourceMaker } from "./running-sources.ts";

export type FollowOptions = StoreOptions & OpenedStore & Pick<OpenedStreams, "xds" | "registrations" | "receipts">;

/** What follows configuration as it changes. */
export interface Followed {
  readonly sources: RunningSources;
  readonly outside: Outside;
  readonly problemReport: ProblemReport;
  readonly reports: ObjectReports;
  readonly debounce: Debounce;
  /** Resolves at the first commit after every source has loaded. */
  readonly loaded: Promise<void>;
}

/** Makes the sources, which are set later, and puts what they say in force as soon as there is quiet. */
export function followSources(given: FollowOptions): Followed {
  const { options, mesh, link, metrics, patchLog, world, store, documents, descriptors, xds, registrations, receipts } = given;
  const { clock, log, baseDir } = options;
  const { settings } = mesh.current;
  const reports = createObjectReports({
    store,
    xds,
    providers: world.providers,
    problemsOf: (key) => [...patchLog.problemsOf(key), ...(problemReport.found.get(key) ?? [])],
    reach: settings.distributionTracking,
  });
  const { promise: loaded, resolve } = Promise.withResolvers<void>();
  const putInForce = (): void => {
    const summary = commit({ ...given, reports });
    patchLog.committed(summary, world.patches.plans.compiled);
    registrations.committed(summary);
    documents.changed();
    outside.follow();
    problemReport.committed();
    resolve();
  };
  const debounce = createDebounce({ afterMs: settings.debounceAfterMs, maxMs: settings.debounceMaxMs }, clock, async () => {
    if (!sources.loaded) return;
    const waiting = descriptors.waiting();
    if (waiting !== undefined) await waiting;
    putInForce();
    await xds.idle();
  });
  const problemReport = createProblemReport({ world, store, clock, log, looked: () => reports.note(), proxiesAwaited: receipts.awaited });
  const outside = createOutside({ baseDir, world, xds, mesh, fetched: metrics.keyFetch, clock, log });
  const sources = createRunningSources({
    make: firstOf([filesOf(given, documents.readings), clusterSource(link), ...options.sources]),
    own: registrations.source,
    store,
    log,
    // Noted when it can be put in force: after the last source has spoken for the first time nobody waits for quiet.
    staged: () => {
      if (sources.loaded) debounce.note();
    },
  });
  link?.remotes(sources.attach);
  link?.permissionsChanged(() => xds.push("permissions of service accounts", "secret"));
  return { sources, outside, problemReport, reports, debounce, loaded };
}

/** Every program reads files. */
const filesOf =
  ({ options: { clock, log }, mesh }: Pick<StoreOptions, "options" | "mesh">, known: KeptDocuments["readings"]): SourceMaker =>
  (address) =>
    address.scheme === "fs"
      ? fileSource(address.target, { clock, log, known, limits: { maxFileBytes: mesh.current.settings.maxConfigFileBytes } })
      : undefined;

const firstOf =
  (makers: readonly SourceMaker[]): SourceMaker =>
  (address) => {
    for (const make of makers) {
      const source = make(address);
      if (source !== undefined) return source;
    }
    return undefined;
  };

function commit({ store, xds, metrics, reports, options: { log } }: FollowOptions & Pick<Followed, "reports">): ChangeSummary {
  const summary = store.commit();
  const problems = store.problems();
  logBroken(log, summary.broken, store);
  metrics.rejectedConfig(problems.filter(({ level }) => level === "error").length);
  countChange(metrics, summary);
  const isChange = summary.added.length + summary.changed.length + summary.removed.length > 0;
  reports.committed(summary, isChange ? xds.push(describeChange(summary), causeOf(summary)) : undefined);
  return summary;
}
