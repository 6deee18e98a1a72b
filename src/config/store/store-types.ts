import type { LabelSelector } from "../../base/labels.ts";
import type { ConfigObject, ObjectRef, Origin, SourceEvent } from "../object.ts";
import type { Problem } from "../problem.ts";
import type { DocumentHead, Judged } from "./judge.ts";

/** What one commit changed. Keys are `Kind/namespace/name`. */
export interface ChangeSummary {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
  /** Documents that were found broken: the key, or the place of one that has no readable name. */
  readonly broken: readonly string[];
  readonly durationMs: number;
}

/** How an object stands. */
export interface ObjectStatus {
  readonly key: string;
  readonly ref: ObjectRef;
  /** `stale`: its document is broken and the last good version is in force. `absent`: broken, and there never was a good version. */
  readonly state: "current" | "stale" | "absent";
  readonly source: string | undefined;
  /** Where it is written now; for a lost document where it was. */
  readonly origin: Origin | undefined;
  /** Since when the version in force is stale, ms since the epoch. */
  readonly staleSince: number | undefined;
  readonly problems: readonly Problem[];
}

/** A document of one source, whether or not it is in force. */
export interface StandingDocument {
  readonly key: string;
  readonly ref: ObjectRef;
  readonly head: DocumentHead;
  /** As `ObjectStatus.state`; `shadowed`: an earlier source holds the same object, and this one is not used. */
  readonly state: ObjectStatus["state"] | "shadowed";
  /** What is wrong with the document itself. */
  readonly problems: readonly Problem[];
}

/** One line of `configz`. */
export interface StoredObject {
  readonly object: ConfigObject;
  readonly status: ObjectStatus;
}

/** What staging an event cost. */
export interface StageSummary {
  readonly documents: number;
  /** Those that said what they said before and were not judged again. */
  readonly reused: number;
}

/**
 * Holds what all sources said, judged, and puts what is in force into the engine.
 * `stage` judges an event in slices and only remembers the outcome; `commit` applies everything staged as one change.
 */
export interface ConfigStore {
  /** Sets the sources in order of precedence (an earlier one wins). A source that is left out takes its objects with it at the next commit. */
  setSources(names: readonly string[]): void;
  /** Sets which namespaces count (MeshConfig `discoverySelectors`), from the next commit on. Objects of others are judged, and otherwise ignored. */
  selectNamespaces(selectors: readonly LabelSelector[]): void;
  /** Brings back the last good versions of before a restart, also for sources that are set later. Call before anything is staged. */
  restore(): Promise<void>;
  /** Judges an event. Events of one source are staged in the order of the calls. */
  stage(source: string, event: SourceEvent): Promise<StageSummary>;
  /** Whether a commit would have something to do. */
  readonly pending: boolean;
  /** Applies all that is staged as one change of the engine. */
  commit(): ChangeSummary;
  /** `stage` and `commit`, for those who have nothing to wait for. */
  apply(source: string, event: SourceEvent): Promise<ChangeSummary>;
  /** The version in force, also of kinds that are kept out of the engine. */
  get(key: string): ConfigObject | undefined;
  origin(key: string): Origin | undefined;
  status(key: string): ObjectStatus | undefined;
  /** Everything wrong with what the sources say, in order of file and line. */
  problems(): readonly Problem[];
  /** What a source says of kinds that are chosen, in namespaces that count, in no order. */
  documents(source: string, isChosen: (kind: string) => boolean): Iterable<StandingDocument>;
  /** Every document of every source as it was judged, in no order. */
  judged(): Iterable<Judged>;
  /** Everything in force, in order of key. */
  list(): readonly StoredObject[];
  /** Resolves when last good versions are safe on disk. */
  flush(): Promise<void>;
}
