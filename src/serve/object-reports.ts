import { KINDS } from "../config/kinds/index.ts";
import type { Problem } from "../config/problem.ts";
import type { ObjectReport, ReportsNow, StatusMetrics, StatusSource } from "../config/status/object-report.ts";
import type { ChangeSummary, ConfigStore, StandingDocument } from "../config/store/store-types.ts";
import type { ResourceProvider } from "../xds/provider.ts";
import type { XdsServer } from "../xds/server.ts";
import { type ObjectReaches, objectReaches } from "./object-reaches.ts";

/** How configuration objects stand: what is wrong with them, and which connected proxies have them. */
export interface ObjectReports {
  /** Objects were put in force with a push; undefined where nothing had to be pushed. */
  committed(summary: Pick<ChangeSummary, "added" | "changed" | "removed">, push: number | undefined): void;
  /** Something that reports depend on may have changed. */
  note(): void;
  /** Calls back at each such note. */
  follow(noted: () => void): void;
  /** All reports as they are now, on objects of one source. */
  look(source: string): ReportsNow;
}

export interface ObjectReportsOptions {
  readonly store: Pick<ConfigStore, "documents">;
  readonly xds: Pick<XdsServer, "progress">;
  readonly providers: readonly Pick<ResourceProvider, "typeUrl" | "provenance">[];
  /** What is wrong with an object beside others, and what of it is left out. */
  readonly problemsOf: (key: string) => readonly Problem[];
  /** Whether proxies are followed too. */
  readonly reach: boolean;
}

const KINDS_WITH_STATUS: ReadonlySet<string> = new Set(KINDS.filter(({ custom }) => custom !== undefined).map(({ kind }) => kind));

/** Works out a report when it is looked at, and remembers only which objects are still on their way. */
export function createObjectReports({ store, xds, providers, problemsOf, reach }: ObjectReportsOptions): ObjectReports {
  /** Objects that not all proxies have yet, and the push that brought them as they are now. */
  const pushes = new Map<string, number>();
  const followers: (() => void)[] = [];
  const note = (): void => {
    for (const noted of followers) noted();
  };
  function* reported(documents: Iterable<StandingDocument>, reaches: ObjectReaches | undefined): Iterable<ObjectReport> {
    for (const document of documents) {
      const beside = problemsOf(document.key);
      const problems = beside.length === 0 ? document.problems : [...document.problems, ...beside];
      yield { ...document, problems, reach: reaches?.of(document.key) };
    }
  }
  return {
    committed({ added, changed, removed }, push) {
      for (const key of removed) pushes.delete(key);
      if (push !== undefined && reach) for (const key of [...added, ...changed]) if (isReported(key)) pushes.set(key, push);
      note();
    },
    note,
    follow: (noted) => void followers.push(noted),
    look(source) {
      const reaches = reach ? objectReaches({ progress: xds.progress(), pushes, providers }) : undefined;
      for (const [key, push] of pushes) if (reaches?.isEverywhere(key, push) === true) pushes.delete(key);
      return {
        proxies: reaches?.proxies ?? 0,
        objects: reported(
          store.documents(source, (kind) => KINDS_WITH_STATUS.has(kind)),
          reaches,
        ),
      };
    },
  };
}

/** The reports on objects of one source, for those who write them into the objects. */
export const statusSource = (reports: ObjectReports, source: string, metrics: StatusMetrics): StatusSource => ({
  look: () => reports.look(source),
  follow: reports.follow,
  metrics,
});

const isReported = (key: string): boolean => KINDS_WITH_STATUS.has(key.slice(0, key.indexOf("/")));
