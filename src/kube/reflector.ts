import { BackOff } from "../base/back-off.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { KubeClient, ListOptions, Selection } from "./kube-client.ts";
import { KubeError } from "./kube-error.ts";
import { isKubeObject } from "./list-reader.ts";
import type { ObjectFields } from "./proto-fields.ts";
import { type KubeObject, placeKey, type ResourceType } from "./resource-type.ts";

/** How a reflector spends its time, in ms. */
export interface ReflectorTimes {
  /** A watch lasts between this and twice as long; then the next one goes on where it ended. */
  readonly watch: number;
  /** The server sends a bookmark every minute or so; a watch that is silent for longer may hang, and is opened anew. */
  readonly idle: number;
  /** How often what is held is compared with what the server has. */
  readonly check: number;
  /** A difference must outlast this: events may still be on their way. */
  readonly checkGrace: number;
  readonly firstRetry: number;
  readonly mostRetry: number;
  /** A watch that ends sooner has failed, however politely. */
  readonly shortWatch: number;
}

/** Those in force; tests shorten them. In ms. */
export const REFLECTOR_TIMES: ReflectorTimes = {
  watch: 300_000,
  idle: 150_000,
  check: 600_000,
  checkGrace: 5_000,
  firstRetry: 250,
  mostRetry: 15_000,
  shortWatch: 1_000,
};

/** Objects of one page: the server holds all of one before it sends any of it. */
const PAGE = 1000;

/** What changed, by `namespace/name`. The first one holds all there is. */
export interface ReflectorChange<T> {
  readonly upserts: ReadonlyMap<string, T>;
  readonly deletes: readonly string[];
  readonly first: boolean;
}

export interface ReflectorOptions<T> {
  readonly client: Pick<KubeClient, "listEach" | "watch">;
  readonly type: ResourceType;
  readonly selection?: Selection;
  /** What `shape` reads, where that is little: nothing else of a list is even parsed. */
  readonly fields?: ObjectFields;
  readonly clock: Clock;
  readonly log: Log;
  /** Keeps what somebody reads; undefined counts as not there. Called as each object arrives, so that the rest of it can be forgotten. */
  readonly shape: (object: KubeObject) => T | undefined;
  readonly changed: (change: ReflectorChange<T>) => void;
  /** The state may have changed. */
  readonly noted?: () => void;
  readonly times?: Partial<ReflectorTimes>;
  readonly random?: () => number;
}

export interface ReflectorState {
  /** `failing`: what was said before stays true as far as anybody knows. */
  readonly state: "starting" | "ok" | "failing";
  /** All objects have been listed once. */
  readonly synced: boolean;
  readonly fault: KubeError | undefined;
  /** Since when it fails, ms since the epoch. */
  readonly failingSince: number | undefined;
  /** When the server was last heard of. */
  readonly heardAt: number | undefined;
  readonly objects: number;
  readonly lists: number;
  readonly watches: number;
  /** Objects that the periodic check found different, each of which was an event that never came. */
  readonly differences: number;
}

/**
 * Follows all objects of one type: lists them, then watches from there. What it holds of an object is its version alone. A list that
 * fails says nothing: only a whole one changes what was said before, and only by what differs.
 */
export class Reflector<T> {
  readonly #options: ReflectorOptions<T>;
  readonly #times: ReflectorTimes;
  readonly #random: () => number;
  readonly #versions = new Map<string, string>();
  readonly #backOff: BackOff;
  #version: string | undefined;
  #heardAt: number | undefined;
  #state: Omit<ReflectorState, "objects" | "heardAt"> = {
    state: "starting",
    synced: false,
    fault: undefined,
    failingSince: undefined,
    lists: 0,
    watches: 0,
    differences: 0,
  };
  #reopen: AbortController | undefined;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#times = { ...REFLECTOR_TIMES, ...options.times };
    this.#random = options.random ?? Math.random;
    this.#backOff = new BackOff({ firstMs: this.#times.firstRetry, mostMs: this.#times.mostRetry, random: this.#random });
  }

  get state(): ReflectorState {
    return { ...this.#state, heardAt: this.#heardAt, objects: this.#versions.size };
  }

  /** Opens the watch anew from where it is, because the connection it has may be dead; a wait after a failure ends. */
  reopen(): void {
    this.#reopen?.abort(REOPENED);
  }

  /** Follows until the signal aborts. Never throws. */
  async run(signal: AbortSignal): Promise<void> {
    const stopChecks = this.#checkRegularly(signal);
    while (!signal.aborted) {
      this.#reopen = new AbortController();
      const turn = AbortSignal.any([signal, this.#reopen.signal]);
      try {
        if (this.#version === undefined) await this.#list(turn);
        await this.#watch(turn).catch(unlessSilent);
      } catch (error) {
        if (signal.aborted) break;
        if (turn.aborted) continue;
        await this.#failed(error, turn);
      }
    }
    stopChecks();
  }

  /**
   * Lists everything. What is not in the whole list is gone; what has the version it had is left alone. The first time nothing is known that could be newer
   * than what the server has in memory, and the watch goes on from there: that is asked for, since it costs neither pages nor the database.
   */
  async #list(signal: AbortSignal): Promise<void> {
    const { shape, selection, fields } = this.#options;
    const upserts = new Map<string, T>();
    const versions = new Map<string, string>();
    const deletes: string[] = [];
    const first = !this.#state.synced;
    this.#set({ lists: this.#state.lists + 1 });
    const version = await this.#listEach({ ...selection, fields, ...(first ? FROM_MEMORY : { limit: PAGE }), signal }, (object) => {
      const key = placeKey(object.metadata);
      const known = this.#versions.get(key);
      const held = object.metadata.resourceVersion ?? "";
      versions.set(key, held);
      if (known !== undefined && known === held) return;
      const shaped = shape(object);
      if (shaped !== undefined) upserts.set(key, shaped);
      else if (known !== undefined) deletes.push(key);
    });
    for (const key of this.#versions.keys()) if (!versions.has(key)) deletes.push(key);
    this.#versions.clear();
    for (const [key, held] of versions) this.#versions.set(key, held);
    this.#version = version;
    this.#set({ synced: true });
    this.#recovered();
    if (first || upserts.size > 0 || deletes.length > 0) this.#options.changed({ upserts, deletes, first });
  }

  /** Every object of all pages of a list. Returns the version of the last. */
  async #listEach(options: ListOptions, take: (object: KubeObject) => void): Promise<string> {
    const { client, type } = this.#options;
    // A long list that comes slowly is no silence.
    const heard = (object: KubeObject): void => {
      this.#heard();
      take(object);
    };
    let head = await client.listEach(type, options, heard).catch((error: unknown) => {
      // The memory of a server that has just started, or of a kind that was just installed, is still being filled: its database is not.
      if (options.resourceVersion === undefined || !(error instanceof KubeError && error.status === TOO_MANY)) throw error;
      return client.listEach(type, { ...options, resourceVersion: undefined, limit: PAGE }, heard);
    });
    while (head.continue !== "")
      head = await client.listEach(type, { ...options, resourceVersion: undefined, limit: PAGE, continue: head.continue }, heard);
    this.#heard();
    return head.resourceVersion;
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { client, clock, type, selection } = this.#options;
    const began = clock.monotonic();
    const timeoutSeconds = Math.ceil(this.#spread(this.#times.watch) / 1000);
    const resourceVersion = this.#version ?? "";
    this.#set({ watches: this.#state.watches + 1 });
    for await (const events of client.watch(type, { ...selection, resourceVersion, timeoutSeconds, idleMs: this.#times.idle, signal })) {
      this.#heard();
      this.#recovered();
      this.#apply(events);
    }
    if (clock.monotonic() - began < this.#times.shortWatch)
      throw new KubeError({ status: 0, reason: "Unreachable", message: "the API server ends watches as soon as they begin" });
    this.#recovered();
  }

  #apply(events: readonly { readonly type: string; readonly object: unknown }[]): void {
    const upserts = new Map<string, T>();
    const deletes = new Set<string>();
    for (const { type, object } of events) {
      if (type === "BOOKMARK") {
        this.#version = versionOf(object) ?? this.#version;
        continue;
      }
      if (!isKubeObject(object)) continue;
      const key = placeKey(object.metadata);
      const shaped = type === "DELETED" ? undefined : this.#options.shape(object);
      this.#version = object.metadata.resourceVersion ?? this.#version;
      if (type === "DELETED") this.#versions.delete(key);
      else this.#versions.set(key, object.metadata.resourceVersion ?? "");
      upserts.delete(key);
      deletes.delete(key);
      if (shaped === undefined) deletes.add(key);
      else upserts.set(key, shaped);
    }
    if (upserts.size > 0 || deletes.size > 0) this.#options.changed({ upserts, deletes: [...deletes], first: false });
  }

  async #failed(error: unknown, turn: AbortSignal): Promise<void> {
    const { clock, log, type } = this.#options;
    const fault =
      error instanceof KubeError ? error : new KubeError({ status: 0, reason: "Unreachable", message: messageOf(error), cause: error });
    const wait = Math.max(this.#backOff.next(), fault.retryAfterMs ?? 0);
    if (fault.isGone) {
      log.debug({ resource: type.plural }, "the API server no longer keeps what is needed to go on; listing again");
      this.#version = undefined;
    } else {
      const began = this.#state.state === "failing" ? this.#state.failingSince : clock.now();
      this.#set({ state: "failing", fault, failingSince: began });
    }
    await clock.sleep(wait, turn).catch(() => undefined);
  }

  #heard(): void {
    this.#heardAt = this.#options.clock.now();
  }

  #recovered(): void {
    this.#backOff.reset();
    if (this.#state.state !== "ok") this.#set({ state: "ok", fault: undefined, failingSince: undefined });
  }

  #set(part: Partial<ReflectorState>): void {
    this.#state = { ...this.#state, ...part };
    this.#options.noted?.();
  }

  #spread(ms: number): number {
    return ms + this.#random() * ms;
  }

  #checkRegularly(signal: AbortSignal): () => void {
    const { clock, log, type } = this.#options;
    let cancel: () => void = () => {};
    const turn = (): void => {
      void this.#check(signal)
        .catch((error) =>
          log.debug({ resource: type.plural, reason: messageOf(error) }, "the check against the API server could not be made"),
        )
        .finally(plan);
    };
    const plan = (): void => {
      if (!signal.aborted) cancel = clock.after(this.#spread(this.#times.check), turn);
    };
    plan();
    return () => cancel();
  }

  /** Compares versions with what the server has. What differs now and still does after a while is an event that never came: all is listed again. */
  async #check(signal: AbortSignal): Promise<void> {
    if (this.#state.state !== "ok") return;
    const { clock, log, type, selection } = this.#options;
    const server = new Map<string, string>();
    await this.#listEach({ ...selection, limit: PAGE, metadataOnly: true, signal }, ({ metadata }) => {
      server.set(placeKey(metadata), metadata.resourceVersion ?? "");
    });
    const suspects = differing(this.#versions, server);
    if (suspects.size === 0) return;
    await clock.sleep(this.#times.checkGrace, signal);
    const lost = [...suspects].filter(([key, held]) => this.#versions.get(key) === held);
    if (lost.length === 0) return;
    this.#set({ differences: this.#state.differences + lost.length });
    log.warn(
      { resource: type.plural, objects: lost.length, example: lost[0]?.[0] },
      "objects differ from those of the API server; listing again",
    );
    this.#version = undefined;
    this.reopen();
  }
}

/**
 * A watch that carried nothing, not even a bookmark, is no fault yet: of a kind of which nothing has happened since it started, a server sends none. Whether it
 * hangs is seen when the watch is opened anew, which fails then.
 */
function unlessSilent(error: unknown): void {
  if (!(error instanceof KubeError && error.reason === "Silent")) throw error;
}

const FROM_MEMORY = { resourceVersion: "0" } as const;
const TOO_MANY = 429;
const REOPENED = "the watch is opened anew";

/** Keys whose version differs, with the version that is held. */
function differing(held: ReadonlyMap<string, string>, server: ReadonlyMap<string, string>): Map<string, string | undefined> {
  const found = new Map<string, string | undefined>();
  for (const key of new Set([...held.keys(), ...server.keys()])) {
    if (held.get(key) !== server.get(key)) found.set(key, held.get(key));
  }
  return found;
}

function versionOf(object: unknown): string | undefined {
  if (typeof object !== "object" || object === null || !("metadata" in object)) return undefined;
  const { metadata } = object;
  const version = typeof metadata === "object" && metadata !== null && "resourceVersion" in metadata ? metadata.resourceVersion : undefined;
  return typeof version === "string" && version !== "" ? version : undefined;
}
