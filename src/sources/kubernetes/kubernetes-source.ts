import { ageOf } from "../../base/age.ts";
import { afterOrNever, type Clock } from "../../base/clock.ts";
import { contentHash } from "../../base/hash.ts";
import type { Log } from "../../base/log.ts";
import type { ConfigSource, RawObject, SourceEvent, SourceHealth } from "../../config/object.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import type { ReflectorChange, ReflectorTimes } from "../../kube/reflector.ts";
import type { ClusterSnapshot, SnapshotState } from "./cluster-snapshot.ts";
import { type Content, type DiscoveryTimes, KindWatches, type WatchPlace } from "./kind-watches.ts";
import { ServerProbe } from "./server-probe.ts";
import { type SourceTrouble, troubleOf } from "./source-trouble.ts";
import { WATCHED_KINDS, type WatchedKind } from "./watched-kinds.ts";

export interface KubernetesSourceOptions {
  readonly client: KubeClient;
  /** Of the source, among those of the store. */
  readonly name?: string;
  /** Which cluster it is, where it is not the one of this control plane. */
  readonly cluster?: string;
  readonly kinds?: readonly WatchedKind[];
  /** Look at these only; empty means all. */
  readonly namespaces: readonly string[];
  /** Of this control plane: objects labelled for another one do not count. Empty: all do. */
  readonly revision: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly snapshot?: ClusterSnapshot;
  /** A cluster that cannot be reached is waited for at the start this long, then left for later; undefined: for ever. */
  readonly patienceMs?: number;
  readonly times?: Partial<ReflectorTimes & DiscoveryTimes & ProbeTimes>;
}

interface ProbeTimes {
  readonly probeMs: number;
  readonly probeTimeoutMs: number;
}

/** How the source is doing, for `/ready?verbose` and `/debug`. */
export interface KubernetesHealth extends SourceHealth {
  readonly objects: number;
  /** Kinds that are not installed in the cluster. */
  readonly absentKinds: readonly string[];
  /** Kinds that we may not read and do without. */
  readonly withheldKinds: readonly string[];
  /** Events that never came and were found by comparing. */
  readonly differences: number;
}

export interface KubernetesSource extends ConfigSource {
  /** Begins to read, so that what `events` says first is there sooner; left out, `events` does so. Ends with the signal, or with theirs. */
  begin(signal: AbortSignal): void;
  sourceHealth(): KubernetesHealth;
}

const TIMES = { soonMs: 500, laterMs: 30_000, probeMs: 5_000, probeTimeoutMs: 5_000 } as const;

/**
 * The objects of a cluster. Yields one `reset` when every kind has been read once (kinds that are not installed are waited for without holding that up),
 * then a `replace` for whatever changes, an object a scope. A cluster that cannot be reached says nothing, and what it said stays in force.
 */
export function kubernetesSource(options: KubernetesSourceOptions): KubernetesSource {
  return new ClusterSource(options);
}

class ClusterSource implements KubernetesSource {
  readonly name: string;
  readonly #options: KubernetesSourceOptions;
  readonly #watches: KindWatches;
  readonly #probe: ServerProbe;
  /** What is said of each object, as text; of Secrets a hash only. */
  readonly #texts = new Map<string, string>();
  readonly #pending = new Map<string, Content | undefined>();
  /** What changed since the snapshot was told. */
  readonly #unsaved = new Set<string>();
  readonly #saved: SnapshotState;
  #reading: { readonly began: number; readonly abort: AbortController; readonly done: Promise<unknown> } | undefined;
  #loaded = false;
  #restoredAt: number | undefined;
  #wake: () => void = () => {};
  #told: SourceTrouble | undefined;

  constructor(options: KubernetesSourceOptions) {
    this.#options = options;
    this.#saved = withoutSecrets(this.#texts);
    this.name = options.name ?? "kubernetes";
    const { client, clock, log, namespaces, kinds = WATCHED_KINDS } = options;
    const { soonMs, laterMs, probeMs, probeTimeoutMs, ...times } = { ...TIMES, ...options.times };
    this.#watches = new KindWatches({
      client,
      kinds,
      namespaces,
      clock,
      log,
      times,
      discovery: { soonMs, laterMs },
      changed: (place, change) => this.#take(place, change),
      uninstalled: (kind) => this.#forget((scope) => scope.startsWith(`${kind.def.kind}/`)),
      noted: () => this.#note(),
    });
    const noted = (): void => this.#note();
    const recovered = (): void => this.#watches.reopen();
    this.#probe = new ServerProbe({ client, clock, everyMs: probeMs, timeoutMs: probeTimeoutMs, recovered, noted });
  }

  begin(signal: AbortSignal): void {
    const abort = new AbortController();
    const both = AbortSignal.any([signal, abort.signal]);
    const done = Promise.all([this.#watches.run(both), this.#probe.run(both)]);
    this.#reading = { began: this.#options.clock.monotonic(), abort, done };
  }

  async *events(signal: AbortSignal): AsyncGenerator<SourceEvent, void> {
    if (this.#reading === undefined) this.begin(signal);
    const reading = this.#reading;
    const onAbort = (): void => {
      reading?.abort.abort();
      this.#wake();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      yield* this.#tellAll(signal);
      while (!signal.aborted) {
        if (!this.#mayTell || this.#pending.size === 0) await this.#woken();
        if (!signal.aborted && this.#mayTell && this.#pending.size > 0) yield* this.#tellChanges();
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
      reading?.abort.abort();
      await this.#options.snapshot?.flush();
      await reading?.done;
      this.#forgetAll();
    }
  }

  // Generators of their own: `events` would hold what it told of last for as long as it waits for the next change, and the first is everything.

  async *#tellAll(signal: AbortSignal): AsyncGenerator<SourceEvent, void> {
    const first = await this.#first(signal);
    if (first !== undefined) yield first;
  }

  async *#tellChanges(): AsyncGenerator<SourceEvent, void> {
    const scopes = this.#takePending().map(([scope, content]) => ({ scope, objects: this.#documents(scope, content) }));
    yield { type: "replace", scopes };
  }

  /** Who asks again is told everything again. */
  #forgetAll(): void {
    for (const known of [this.#texts, this.#pending, this.#unsaved]) known.clear();
    this.#reading = undefined;
    this.#loaded = false;
    this.#restoredAt = undefined;
  }

  sourceHealth(): KubernetesHealth {
    const reports = this.#watches.reports();
    const trouble = this.#trouble();
    const withheld = reports.filter(({ kind, state }) => kind.dispensable && state.fault?.isForbidden === true);
    return {
      state: trouble === undefined ? (this.#loaded ? "ok" : "starting") : "failing",
      ...(trouble !== undefined && { message: trouble.message, since: trouble.since }),
      objects: this.#texts.size,
      absentKinds: this.#watches.absent(),
      withheldKinds: [...new Set(withheld.map(({ kind }) => kind.def.kind))],
      differences: reports.reduce((sum, { state }) => sum + state.differences, 0),
    };
  }

  /** Partial knowledge is not told: before everything was read once, only a whole state of before a restart goes out. */
  get #mayTell(): boolean {
    return this.#loaded || this.#restoredAt !== undefined;
  }

  /** All there is once it has been read, or what there was before a restart, or nothing where the cluster is not to be had; undefined when stopped. */
  async #first(signal: AbortSignal): Promise<SourceEvent | undefined> {
    const { clock, patienceMs, snapshot, log } = this.#options;
    const began = this.#reading?.began ?? clock.monotonic();
    const left = (ms: number): number => Math.max(0, began + ms - clock.monotonic());
    if (snapshot !== undefined) await this.#readWithin(left(Math.min(patienceMs ?? SNAPSHOT_AFTER_MS, SNAPSHOT_AFTER_MS)), signal);
    // Reading what was kept takes as long as reading a list: it is left where it is while there is hope.
    const saved = this.#loaded || signal.aborted ? undefined : await snapshot?.load();
    if (saved === undefined) await this.#readWithin(patienceMs && left(patienceMs), signal);
    if (signal.aborted) return undefined;
    if (!this.#loaded && saved !== undefined) {
      log.warn(
        { objects: saved.objects.size },
        `the cluster cannot be reached; what it said ${ageOf(clock.now() - saved.at)} ago is served`,
      );
      this.#restore(saved.objects);
      this.#restoredAt = saved.at;
    }
    if (!this.#mayTell) return { type: "reset", objects: [] };
    return { type: "reset", objects: this.#takePending().flatMap(([scope, content]) => this.#documents(scope, content)) };
  }

  /** Resolves when everything has been read, or when the cluster is away after so long; undefined waits for ever. */
  async #readWithin(ms: number | undefined, signal: AbortSignal): Promise<void> {
    let patient = true;
    const cancel = afterOrNever(this.#options.clock, ms, () => {
      patient = false;
      this.#wake();
    });
    try {
      while (!this.#loaded && !signal.aborted && (patient || !this.#isAway())) await this.#woken();
    } finally {
      cancel();
    }
  }

  /** Whether something is refused or not answered at all. A cluster that is merely slow, so that something was heard of it, is not away. */
  #isAway(): boolean {
    const needed = this.#watches.reports().filter(({ kind }) => !kind.dispensable);
    const silent = this.#probe.state.fault !== undefined || needed.every(({ state }) => state.heardAt === undefined);
    const refused = needed.some(({ state }) => !state.synced && state.fault !== undefined);
    return silent || refused || this.#watches.discoveryFault !== undefined;
  }

  #restore(objects: ReadonlyMap<string, unknown>): void {
    for (const [scope, content] of objects) {
      if (typeof content !== "object" || content === null || this.#pending.has(scope)) continue;
      this.#texts.set(scope, JSON.stringify(content));
      this.#pending.set(scope, content as Content);
    }
  }

  #take(place: WatchPlace, { upserts, deletes, first }: ReflectorChange<Content>): void {
    const kind = place.kind.def.kind;
    for (const [key, content] of upserts) {
      if (this.#isOurs(place.kind, content)) this.#say(`${kind}/${key}`, content);
      else this.#say(`${kind}/${key}`, undefined);
    }
    for (const key of deletes) this.#say(`${kind}/${key}`, undefined);
    if (first) this.#forget((scope) => isIn(scope, place) && !upserts.has(scope.slice(kind.length + 1)));
    this.#note();
  }

  /** Says it, unless that is what was said before: most writes to an object change nothing that anybody reads. */
  #say(scope: string, content: Content | undefined): void {
    const text = content === undefined ? undefined : textOf(scope, content);
    if (this.#texts.get(scope) === text) return;
    if (text === undefined) this.#texts.delete(scope);
    else this.#texts.set(scope, text);
    this.#pending.set(scope, content);
    if (!isSecret(scope)) this.#unsaved.add(scope);
  }

  #forget(which: (scope: string) => boolean): void {
    for (const scope of [...this.#texts.keys()]) if (which(scope)) this.#say(scope, undefined);
    this.#note();
  }

  /** Objects labelled for another revision belong to another control plane, as in Istio. */
  #isOurs({ revisioned }: WatchedKind, content: Content): boolean {
    const { revision } = this.#options;
    if (!revisioned || revision === "") return true;
    const labels = (content.metadata as { readonly labels?: Readonly<Record<string, string>> }).labels;
    const wanted = labels?.["istio.io/rev"];
    return wanted === undefined || wanted === revision;
  }

  #note(): void {
    if (!this.#loaded && this.#watches.loaded) {
      this.#loaded = true;
      this.#restoredAt = undefined;
    }
    if (this.#loaded && this.#unsaved.size > 0) {
      this.#options.snapshot?.save(this.#unsaved, this.#saved);
      this.#unsaved.clear();
    }
    this.#tell();
    this.#wake();
  }

  /** The log says when the cluster is lost and when it is back, once. */
  #tell(): void {
    const { log } = this.#options;
    const trouble = this.#trouble();
    if (trouble?.message === this.#told?.message) return;
    if (trouble === undefined) log.info("the cluster can be read again");
    else if (this.#told === undefined)
      log.warn({ reason: trouble.message }, "the cluster cannot be read; what was read before stays in force");
    this.#told = trouble;
  }

  #trouble(): SourceTrouble | undefined {
    return troubleOf({ probe: this.#probe.state, watches: this.#watches, restoredAt: this.#restoredAt, now: this.#options.clock.now() });
  }

  #takePending(): [string, Content | undefined][] {
    const taken = [...this.#pending];
    this.#pending.clear();
    return taken;
  }

  #documents(scope: string, content: Content | undefined): readonly RawObject[] {
    if (content === undefined) return [];
    const { cluster } = this.#options;
    const written = this.#saved.get(scope);
    return [
      {
        ...{ origin: { source: this.name, isServed: true }, slot: scope, scope, content },
        ...(written !== undefined && { written }),
        ...(cluster !== undefined && { cluster }),
      },
    ];
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** What is kept of before is used this soon where the cluster does not answer. */
const SNAPSHOT_AFTER_MS = 3_000;

const isSecret = (scope: string): boolean => scope.startsWith("Secret/");
const textOf = (scope: string, content: Content): string =>
  isSecret(scope) ? contentHash(JSON.stringify(content)) : JSON.stringify(content);

const withoutSecrets = (texts: ReadonlyMap<string, string>): SnapshotState => ({
  get size() {
    return texts.size;
  },
  get: (scope) => (isSecret(scope) ? undefined : texts.get(scope)),
  *[Symbol.iterator]() {
    for (const entry of texts) if (!isSecret(entry[0])) yield entry;
  },
});

/** Whether an object is one of those a watch is for. */
function isIn(scope: string, { kind: { def }, namespace }: WatchPlace): boolean {
  if (!scope.startsWith(`${def.kind}/`)) return false;
  if (namespace === undefined) return true;
  return def.scope === "Namespaced" ? scope.startsWith(`${def.kind}/${namespace}/`) : scope === `${def.kind}//${namespace}`;
}
