import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { SourceAddress } from "../config/mesh/source-address.ts";
import type { ConfigSource } from "../config/object.ts";
import type { ConfigStore } from "../config/store/store-types.ts";

/** Makes the source an address means; undefined where this program has none of that kind. */
export type SourceMaker = (address: SourceAddress) => ConfigSource | undefined;

/** How a source is doing. */
export interface SourceState {
  readonly address: string;
  readonly name: string;
  readonly loaded: boolean;
  readonly failure: string | undefined;
  /** Since when it may have changed unnoticed, ms since the epoch, where the source can tell. */
  readonly failingSince: number | undefined;
}

export interface RunningSources {
  /** Starts, keeps and stops sources so that exactly these run, in this order of precedence. */
  set(addresses: readonly SourceAddress[]): void;
  /**
   * Adds a source while others run, or puts it in the place of the one attached under that name: what that one said stays in force until the new one
   * speaks. Undefined takes it away, with all it said.
   */
  attach(name: string, source: ConfigSource | undefined): void;
  /** Has all sources look at everything now. */
  rescan(): void;
  states(): readonly SourceState[];
  /** Every source has said all it had to say at start. */
  readonly loaded: boolean;
  stop(): void;
}

function failureOf(source: ConfigSource): Pick<SourceState, "failure" | "failingSince"> {
  const health = source.sourceHealth?.();
  return health?.state === "failing" ? { failure: health.message ?? "it fails", failingSince: health.since } : NO_FAILURE;
}

const NO_FAILURE = { failure: undefined, failingSince: undefined };

interface Running {
  readonly address: string;
  readonly source: ConfigSource;
  readonly abort: AbortController;
  loaded: boolean;
  failure: string | undefined;
}

export interface SourcesOptions {
  readonly make: SourceMaker;
  /** A source of the program itself: it always runs, and any that is configured goes before it. */
  readonly own: ConfigSource;
  readonly store: ConfigStore;
  readonly log: Log;
  /** Something new is staged. */
  readonly staged: () => void;
}

async function follow(entry: Running, { store, log, staged }: Pick<SourcesOptions, "store" | "log" | "staged">): Promise<void> {
  const events = entry.source.events(entry.abort.signal)[Symbol.asyncIterator]();
  // A function of its own, for a loop would hold the last event, which may be all there is, for as long as it waits for the next.
  const takeNext = async (): Promise<boolean> => {
    const event = await events.next();
    if (event.done === true || entry.abort.signal.aborted) return false;
    await store.stage(entry.source.name, event.value);
    entry.loaded = true;
    entry.failure = undefined;
    staged();
    return true;
  };
  try {
    while (await takeNext());
  } catch (error) {
    if (entry.abort.signal.aborted) return;
    entry.failure = messageOf(error);
    log.error({ source: entry.address, reason: entry.failure }, "a configuration source ended; what it said stays in force");
  } finally {
    await events.return?.().catch(() => undefined);
  }
}

const stateOf = ({ address, source, loaded, failure }: Running): SourceState => ({
  address,
  name: source.name,
  loaded,
  ...(failure === undefined ? failureOf(source) : { failure, failingSince: undefined }),
});

/** Feeds the store from all configured sources. A source that breaks keeps what it said; the others do not notice. */
export function createRunningSources({ make, own, store, log, staged }: SourcesOptions): RunningSources {
  let running: Running[] = [];
  const attached = new Map<string, Running>();

  const begin = (address: string, source: ConfigSource): Running => {
    const entry: Running = { address, source, abort: new AbortController(), loaded: false, failure: undefined };
    void follow(entry, { store, log, staged });
    return entry;
  };
  let inner: Running | undefined;

  const start = (address: SourceAddress): Running | undefined => {
    const source = make(address);
    if (source !== undefined) return begin(address.address, source);
    if (!address.assumed) log.warn({ source: address.address }, "this program has no source of that kind; it is left out");
    return undefined;
  };

  const all = (): readonly Running[] => [...running, ...attached.values()];
  const order = (): void => store.setSources([...all().map(({ source }) => source.name), own.name]);
  let started = false;

  return {
    attach(name, source) {
      const before = attached.get(name);
      before?.abort.abort();
      attached.delete(name);
      if (source !== undefined) {
        const entry = begin(`k8s://${name}`, source);
        entry.loaded = before?.loaded ?? false;
        attached.set(name, entry);
      }
      order();
      staged();
    },
    set(addresses) {
      const kept = new Map(running.map((entry) => [entry.address, entry]));
      running = addresses.map((address) => kept.get(address.address) ?? start(address)).filter((entry) => entry !== undefined);
      for (const entry of kept.values()) if (!running.includes(entry)) entry.abort.abort();
      inner ??= begin(own.name, own);
      order();
      staged();
    },
    rescan() {
      for (const { source } of all()) source.rescan?.();
    },
    states: () => all().map(stateOf),
    get loaded() {
      // What is attached later adds to the others and takes nothing from them: they do not wait for it.
      const waitedFor = started ? running : all();
      const loaded = inner?.loaded === true && waitedFor.every((entry) => entry.loaded);
      started ||= loaded;
      return loaded;
    },
    stop() {
      for (const entry of [...all(), inner]) entry?.abort.abort();
    },
  };
}
