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
}

export interface RunningSources {
  /** Starts, keeps and stops sources so that exactly these run, in this order of precedence. */
  set(addresses: readonly SourceAddress[]): void;
  states(): readonly SourceState[];
  /** Every source has said all it had to say at start. */
  readonly loaded: boolean;
  stop(): void;
}

function failureOf(source: ConfigSource): string | undefined {
  const health = source.sourceHealth?.();
  return health?.state === "failing" ? (health.message ?? "it fails") : undefined;
}

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

/** Feeds the store from all configured sources. A source that breaks keeps what it said; the others do not notice. */
export function createRunningSources({ make, own, store, log, staged }: SourcesOptions): RunningSources {
  let running: Running[] = [];

  const follow = async (entry: Running): Promise<void> => {
    try {
      for await (const event of entry.source.events(entry.abort.signal)) {
        await store.stage(entry.source.name, event);
        entry.loaded = true;
        entry.failure = undefined;
        staged();
      }
    } catch (error) {
      if (entry.abort.signal.aborted) return;
      entry.failure = messageOf(error);
      log.error({ source: entry.address, error: entry.failure }, "a configuration source ended; what it said stays in force");
    }
  };

  const begin = (address: string, source: ConfigSource): Running => {
    const entry: Running = { address, source, abort: new AbortController(), loaded: false, failure: undefined };
    void follow(entry);
    return entry;
  };
  let inner: Running | undefined;

  const start = (address: SourceAddress): Running | undefined => {
    const source = make(address);
    if (source === undefined) {
      if (!address.assumed) log.warn({ source: address.address }, "this program has no source of that kind; it is left out");
      return undefined;
    }
    return begin(address.address, source);
  };

  return {
    set(addresses) {
      const kept = new Map(running.map((entry) => [entry.address, entry]));
      running = addresses.map((address) => kept.get(address.address) ?? start(address)).filter((entry) => entry !== undefined);
      for (const entry of kept.values()) if (!running.includes(entry)) entry.abort.abort();
      inner ??= begin(own.name, own);
      store.setSources([...running.map(({ source }) => source.name), own.name]);
      staged();
    },
    states: () =>
      running.map(({ address, source, loaded, failure }) => ({
        address,
        name: source.name,
        loaded,
        failure: failure ?? failureOf(source),
      })),
    get loaded() {
      return inner?.loaded === true && running.every((entry) => entry.loaded);
    },
    stop() {
      for (const entry of [...running, inner]) entry?.abort.abort();
    },
  };
}
