import type { Clock } from "../../base/clock.ts";
import { invariant } from "../../base/errors.ts";
import type { LabelSelector, Labels } from "../../base/labels.ts";
import type { Log } from "../../base/log.ts";
import type { Engine } from "../../engine/index.ts";
import { parseDocument } from "../documents/parse-document.ts";
import type { Inputs } from "../inputs.ts";
import { type ConfigObject, type Origin, objectKey, type RawObject, type SourceEvent } from "../object.ts";
import type { Problem } from "../problem.ts";
import { type AdmittedNamespaces, admittedNamespaces } from "./admitted-namespaces.ts";
import { headOf, type JudgeDeps, type Judged, judge, type ReadObject } from "./judge.ts";
import { type JudgedEvent, judgeEvent } from "./judge-event.ts";
import type { LastGood } from "./last-good.ts";
import { type GoodVersion, SourceState, type Standing } from "./source-state.ts";
import { isFaulty, problemsOfKey, sortProblems } from "./store-problems.ts";
import type { ChangeSummary, ConfigStore, ObjectStatus, StageSummary, StandingDocument, StoredObject } from "./store-types.ts";

export interface StoreOptions {
  readonly engine: Pick<Engine, "batch">;
  readonly inputs: Pick<Inputs, "objects">;
  /** In order of precedence. */
  readonly sources: readonly string[];
  readonly readObject: ReadObject;
  readonly log: Log;
  readonly clock: Clock;
  readonly persistence?: LastGood;
}

/** Empty until sources have said something; where two hold the same object, the one that is named first in `sources` counts. */
export const createStore = (options: StoreOptions): ConfigStore => new Store(options);

/** Secrets never enter the engine, its provenance and history, nor last-good files: they are asked of the store by key. */
const isSecret = (object: ConfigObject): boolean => object.kind === "Secret";

interface InForce {
  readonly source: string;
  readonly standing: Standing;
}

interface SourceQueue {
  readonly state: SourceState;
  readonly staged: Pick<JudgedEvent, "reset" | "scopes">[];
  /** The last verdicts on each scope, staged or committed. */
  readonly latest: Map<string, readonly Judged[]>;
  tail: Promise<unknown>;
}

class Store implements ConfigStore {
  readonly #options: StoreOptions;
  readonly #judgeDeps: JudgeDeps;
  readonly #sources = new Map<string, SourceQueue>();
  readonly #inForce = new Map<string, InForce>();
  readonly #stale = new Map<string, { readonly since: number; readonly scope: string }>();
  /** Last good versions of before a restart, by source and key, until the source is set. */
  readonly #restored = new Map<string, Map<string, GoodVersion>>();
  #order: readonly string[];
  #dropped: SourceState[] = [];
  #reordered = false;
  #selectors: readonly LabelSelector[] = [];
  #selectorsChanged = false;
  #admitted: AdmittedNamespaces = admittedNamespaces([], () => undefined);
  #brokenSinceCommit: string[] = [];
  /** Keys with whose documents something is wrong: few of many, and to look for them after each change would cost more than most changes do. */
  readonly #faulty = new Set<string>();
  #problems: readonly Problem[] | undefined;

  constructor(options: StoreOptions) {
    this.#options = options;
    const keepText = (object: ConfigObject): boolean => options.persistence !== undefined && !isSecret(object);
    this.#judgeDeps = { readObject: options.readObject, log: options.log, keepText };
    this.#order = [];
    this.setSources(options.sources);
    this.#reordered = false;
  }

  setSources(names: readonly string[]): void {
    for (const [name, queue] of this.#sources) {
      if (names.includes(name)) continue;
      this.#sources.delete(name);
      this.#dropped.push(queue.state);
    }
    for (const name of names) {
      if (this.#sources.has(name)) continue;
      const state = new SourceState(name);
      this.#adopt(state);
      this.#sources.set(name, { state, staged: [], latest: new Map(), tail: Promise.resolve() });
    }
    this.#order = [...names];
    this.#reordered = true;
  }

  selectNamespaces(selectors: readonly LabelSelector[]): void {
    const next = selectors.map(({ matchLabels, matchExpressions }) => ({ matchLabels, matchExpressions }));
    if (JSON.stringify(next) === JSON.stringify(this.#selectors)) return;
    this.#selectors = next;
    this.#selectorsChanged = true;
  }

  async restore(): Promise<void> {
    for (const record of (await this.#options.persistence?.load()) ?? []) {
      const { content, defaultNamespace, key, origin, scope, slot, source } = record;
      const raw: RawObject = { origin, slot, scope, content, ...(defaultNamespace !== undefined && { defaultNamespace }) };
      const { written, namespace, object, ref } = judge(raw, { scope, index: 0 }, this.#judgeDeps);
      if (object === undefined || ref === undefined || objectKey(ref) !== key) {
        this.#options.persistence?.remove(source, key);
        continue;
      }
      const versions = this.#restored.get(source) ?? new Map<string, GoodVersion>();
      this.#restored.set(source, versions.set(key, { object, ref, scope, slot, origin, namespace, written }));
    }
    for (const { state } of this.#sources.values()) this.#adopt(state);
  }

  stage(source: string, event: SourceEvent): Promise<StageSummary> {
    const queue = this.#sources.get(source);
    invariant(queue !== undefined, `no source is called ${source}`);
    const done = queue.tail.then(() => this.#stage(queue, event));
    queue.tail = done.catch(() => undefined);
    return done;
  }

  get pending(): boolean {
    if (this.#reordered || this.#selectorsChanged || this.#dropped.length > 0) return true;
    for (const queue of this.#sources.values()) if (queue.staged.length > 0) return true;
    return false;
  }

  commit(): ChangeSummary {
    const { clock, engine, inputs } = this.#options;
    const start = clock.monotonic();
    const before = this.#settleAll(this.#takeStaged());
    const added: string[] = [];
    const changed: string[] = [];
    const removed: string[] = [];
    engine.batch(() => {
      for (const [key, known] of before) {
        const object = this.get(key);
        if (object === undefined) {
          if (known !== undefined) removed.push(key);
          inputs.objects.delete(key);
        } else {
          if (known === undefined) added.push(key);
          else if (known.hash !== object.hash) changed.push(key);
          if (!isSecret(object)) inputs.objects.set(key, object);
        }
      }
    });
    this.#problems = undefined;
    const broken = this.#brokenSinceCommit.splice(0);
    return { added: added.sort(), changed: changed.sort(), removed: removed.sort(), broken, durationMs: clock.monotonic() - start };
  }

  async apply(source: string, event: SourceEvent): Promise<ChangeSummary> {
    await this.stage(source, event);
    return this.commit();
  }

  get(key: string): ConfigObject | undefined {
    const object = this.#inForce.get(key)?.standing.version.object;
    return object !== undefined && this.#admitted.admits(object.namespace) ? object : undefined;
  }

  origin(key: string): Origin | undefined {
    return this.status(key)?.origin;
  }

  status(key: string): ObjectStatus | undefined {
    const inForce = this.#inForce.get(key);
    const holder = inForce?.source ?? this.#order.find((name) => (this.#state(name)?.documents(key).length ?? 0) > 0);
    const state = holder === undefined ? undefined : this.#state(holder);
    const owner = state?.documents(key)[0];
    const version = inForce?.standing.version;
    const ref = version?.ref ?? owner?.ref;
    if (ref === undefined || holder === undefined) return undefined;
    if (inForce === undefined && owner?.broken !== true) return undefined;
    return {
      key,
      ref,
      state: inForce === undefined ? "absent" : inForce.standing.stale ? "stale" : "current",
      source: holder,
      origin: owner?.origin ?? version?.origin,
      staleSince: this.#stale.get(staleId(holder, key))?.since,
      problems: sortProblems(problemsOfKey(key, this.#states(), inForce?.source)),
    };
  }

  problems(): readonly Problem[] {
    this.#problems ??= sortProblems(this.#allProblems());
    return this.#problems;
  }

  *documents(source: string, isChosen: (kind: string) => boolean): Iterable<StandingDocument> {
    for (const document of this.#state(source)?.owners() ?? []) {
      const { key, ref, problems, broken } = document;
      if (key === undefined || ref === undefined || !isChosen(ref.kind) || !this.#admitted.admits(ref.namespace)) continue;
      const inForce = this.#inForce.get(key);
      const own = inForce?.source === source ? inForce.standing : undefined;
      const state = inForce !== undefined && own === undefined ? "shadowed" : own?.stale === true ? "stale" : own ? "current" : "absent";
      if (own !== undefined || broken || state === "shadowed") yield { key, ref, head: headOf(document), state, problems };
    }
  }

  *judged(): Iterable<Judged> {
    for (const { state } of this.#sources.values()) for (const documents of state.scopes()) yield* documents;
  }

  list(): readonly StoredObject[] {
    const stored: StoredObject[] = [];
    for (const key of [...this.#inForce.keys()].sort()) {
      const object = this.get(key);
      const status = this.status(key);
      if (object !== undefined && status !== undefined) stored.push({ object, status });
    }
    return stored;
  }

  async flush(): Promise<void> {
    await this.#options.persistence?.flush();
  }

  async #stage(queue: SourceQueue, event: SourceEvent): Promise<StageSummary> {
    const { latest, staged } = queue;
    const { reset, scopes, broken, documents, reused } = await judgeEvent(event, {
      ...this.#judgeDeps,
      clock: this.#options.clock,
      latest,
    });
    if (reset) latest.clear();
    for (const [scope, judged] of scopes) latest.set(scope, judged);
    staged.push({ reset, scopes });
    this.#brokenSinceCommit.push(...broken);
    return { documents, reused };
  }

  /** Gives a source the versions it had in force before a restart. Those of a source that is not configured wait on disk. */
  #adopt(state: SourceState): void {
    for (const [key, version] of this.#restored.get(state.name) ?? []) {
      state.remember(key, version);
      this.#stale.set(staleId(state.name, key), { since: this.#options.clock.now(), scope: version.scope });
    }
    this.#restored.delete(state.name);
  }

  /** Moves what is staged into the states of the sources; returns the keys to settle. */
  #takeStaged(): Set<string> {
    const touched = new Set<string>();
    const add = (keys: Iterable<string>): void => {
      for (const key of keys) touched.add(key);
    };
    for (const state of this.#dropped.splice(0)) {
      const keys = new Set(state.rememberedKeys());
      for (const scope of [...state.scopeNames()]) for (const key of state.replace(scope, [])) keys.add(key);
      for (const key of keys) this.#persist(state, key, state.settle(key));
      add(keys);
    }
    if (this.#reordered) add(this.#inForce.keys());
    this.#reordered = false;
    for (const { state, staged } of this.#sources.values()) {
      for (const { reset, scopes } of staged.splice(0)) {
        if (reset) {
          add(state.rememberedKeys());
          for (const scope of [...state.scopeNames()]) if (!scopes.has(scope)) add(state.replace(scope, []));
        }
        for (const [scope, documents] of scopes) add(state.replace(scope, documents));
      }
    }
    return touched;
  }

  /** Settles keys and, after that, which namespaces count. Returns what counted before of all keys that either may have changed. */
  #settleAll(touched: ReadonlySet<string>): ReadonlyMap<string, ConfigObject | undefined> {
    const before = new Map<string, ConfigObject | undefined>();
    const states = this.#states();
    for (const key of touched) {
      before.set(key, this.get(key));
      const inForce = this.#settle(key, states);
      if (isFaulty(key, states, inForce?.source)) this.#faulty.add(key);
      else this.#faulty.delete(key);
    }
    const relabelled = this.#selectors.length > 0 && [...touched].some((key) => key.startsWith("Namespace/"));
    if (!this.#selectorsChanged && !relabelled) return before;
    const labelsOf = (name: string): Labels | undefined => this.#inForce.get(`Namespace//${name}`)?.standing.version.object.labels;
    const next = admittedNamespaces(this.#selectors, labelsOf);
    for (const [key, { standing }] of this.#inForce) {
      const { namespace } = standing.version.object;
      if (!before.has(key) && next.admits(namespace) !== this.#admitted.admits(namespace)) before.set(key, this.get(key));
    }
    this.#admitted = next;
    this.#selectorsChanged = false;
    return before;
  }

  /** Decides which source's version of a key is in force: the first that has one. */
  #settle(key: string, states: readonly SourceState[]): InForce | undefined {
    let inForce: InForce | undefined;
    for (const state of states) {
      const standing = state.settle(key);
      this.#persist(state, key, standing);
      if (standing !== undefined) inForce ??= { source: state.name, standing };
    }
    if (inForce === undefined) this.#inForce.delete(key);
    else this.#inForce.set(key, inForce);
    return inForce;
  }

  /** Keeps on disk exactly the versions that are in force although their document is broken. */
  #persist(state: SourceState, key: string, standing: Standing | undefined): void {
    if (this.#stale.size === 0 && standing?.stale !== true) return;
    const id = staleId(state.name, key);
    const known = this.#stale.get(id);
    if (standing?.stale === true) {
      const { written, scope } = standing.version;
      if (known?.scope === scope) return;
      this.#stale.set(id, { since: known?.since ?? this.#options.clock.now(), scope });
      if (written !== undefined) this.#options.persistence?.put(recordOf(state.name, key, { ...standing.version, written }));
    } else if (known !== undefined) {
      this.#stale.delete(id);
      this.#options.persistence?.remove(state.name, key);
    }
  }

  #state(name: string): SourceState | undefined {
    return this.#sources.get(name)?.state;
  }

  #states(): SourceState[] {
    return this.#order.flatMap((name) => this.#state(name) ?? []);
  }

  *#allProblems(): Iterable<Problem> {
    const states = this.#states();
    for (const state of states) for (const document of state.keyless()) yield* document.problems;
    for (const key of this.#faulty) yield* problemsOfKey(key, states, this.#inForce.get(key)?.source);
  }
}

const staleId = (source: string, key: string): string => `${source}\n${key}`;

function recordOf(source: string, key: string, { written, namespace, origin, scope, slot }: GoodVersion & { readonly written: string }) {
  const document = parseDocument(written);
  const content = "parts" in document ? document.parts[0]?.content : undefined;
  return { source, key, scope, slot, origin, content, ...(namespace !== undefined && { defaultNamespace: namespace }) };
}
