/**
 * A validated configuration object: immutable, typed, the same form for every served version of its kind.
 * Where it was written (file and line) is not part of it: that is asked of the store, so that moving an object within a file changes nothing.
 */
export interface ConfigObject<S = unknown> {
  readonly kind: string;
  readonly group: string;
  /** Version it was written in, e.g. "v1". */
  readonly version: string;
  readonly namespace: string;
  readonly name: string;
  /** The cluster it is in, where that is not the one of this control plane: several clusters may have an object of one name. */
  readonly cluster?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** metadata.creationTimestamp in ms, 0 where absent. Older objects win conflicts, then namespace and name decide. */
  readonly createdAt: number;
  readonly generation: number;
  /** For Istio kinds the protobuf-es message of the spec; for Kubernetes core kinds a plain typed record (see each kind). */
  readonly spec: S;
  /** What of its status counts (see `KindDef.observe`). */
  readonly observed?: string;
  /** Hash of everything above: equal hashes mean nothing changed. */
  readonly hash: string;
}

export interface ObjectRef {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly cluster?: string;
}

/** Identity of an object in the store and in the engine: `Kind/namespace/name`, and `Kind/namespace/name@cluster` for one of another cluster. */
export const objectKey = (ref: ObjectRef): string => `${ref.kind}/${ref.namespace}/${ref.name}${inCluster(ref.cluster ?? "")}`;

/** What follows the name in the key of an object of a cluster; nothing for this control plane's own. Names cannot hold it. */
export const inCluster = (cluster: string): string => (cluster === "" ? "" : `@${cluster}`);

/** The cluster that a key names; empty for this control plane's own. */
export function clusterOfKey(key: string): string {
  const at = key.indexOf("@");
  return at < 0 ? "" : key.slice(at + 1);
}

/** Where a document was written. `line` is 1-based. */
export interface Origin {
  readonly source: string;
  readonly file?: string;
  readonly line?: number;
  /** An API server holds the object and has checked it against its schema: a field we do not know is newer than we are, not misspelt. */
  readonly isServed?: true;
}

/** `file:line` as far as they are known, else the source: clickable in an editor. */
export const formatOrigin = (origin: Origin): string =>
  origin.file === undefined ? origin.source : origin.line === undefined ? origin.file : `${origin.file}:${origin.line}`;

/** What a source delivers: one document, not judged yet. The store parses and validates it. */
export interface RawObject {
  readonly origin: Origin;
  /** Stable identity of the document inside its source (e.g. file and index): used only for documents that have no readable name. */
  readonly slot: string;
  /** JSON-shaped content; undefined when the text could not be read (then `fault` says why). */
  readonly content: unknown;
  /** The content as text, JSON or one YAML document, where the source has that anyway: it need not be made once more to be kept. */
  readonly written?: string | undefined;
  readonly fault?: string;
  /** The cluster it was read from, where that is not this control plane's own. */
  readonly cluster?: string;
  /** Namespace for objects that carry none (the sub-directory, for files). */
  readonly defaultNamespace?: string;
  /** Text of the document, to find the line of a field when something is wrong. Begins at `origin.line`. Not kept after judging. */
  readonly text?: string;
  /** The scope a `replace` would name for it (for files: the path below the directory). Default: `slot`. */
  readonly scope?: string;
  /**
   * Hash of what the document says. A document with the digest it had before need not be judged again, so a source may make
   * `content` a getter that parses only when asked. Without a digest every delivery is judged.
   */
  readonly digest?: string;
}

/**
 * What a source says. `reset` replaces everything it said before, so a lost watch is healed by sending one. It may be all there is: a source may read
 * each object when it is asked for, so that none outlives its judgement. They can be asked for once.
 */
export type SourceEvent =
  | { readonly type: "reset"; readonly objects: Iterable<RawObject> | AsyncIterable<RawObject> }
  /** Each scope (for files: a file path) is replaced whole: its objects are now exactly these; none = the scope is gone. */
  | { readonly type: "replace"; readonly scopes: readonly { readonly scope: string; readonly objects: readonly RawObject[] }[] };

/** How a source is doing. A failing one keeps what it said in force. */
export interface SourceHealth {
  readonly state: "starting" | "ok" | "failing";
  readonly message?: string;
  /** Since when it fails, ms since the epoch. */
  readonly since?: number;
}

export interface ConfigSource {
  readonly name: string;
  /** Yields one `reset`, then any events, until `signal` aborts. Bad documents are passed on: the store judges them. */
  events(signal: AbortSignal): AsyncIterable<SourceEvent>;
  /** Looks at everything now, where it would look again only after a while. */
  rescan?(): void;
  /** Where it can tell. */
  sourceHealth?(): SourceHealth;
}
