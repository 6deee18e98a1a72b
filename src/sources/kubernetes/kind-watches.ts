import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { installedKinds, wantedKey } from "../../kube/discovery.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { Reflector, type ReflectorChange, type ReflectorState, type ReflectorTimes } from "../../kube/reflector.ts";
import type { ResourceType } from "../../kube/resource-type.ts";
import type { WatchedKind } from "./watched-kinds.ts";

/** A document that was read of an object. */
export type Content = Readonly<Record<string, unknown>>;

/** The objects of one kind, in one namespace or in all of them (undefined). */
export interface WatchPlace {
  readonly kind: WatchedKind;
  readonly namespace: string | undefined;
}

export interface WatchesOptions {
  readonly client: KubeClient;
  readonly kinds: readonly WatchedKind[];
  /** Empty: all. */
  readonly namespaces: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  readonly times: Partial<ReflectorTimes> | undefined;
  readonly discovery: DiscoveryTimes;
  readonly changed: (place: WatchPlace, change: ReflectorChange<Content>) => void;
  /** A kind is no longer installed: nothing of it is there any more. */
  readonly uninstalled: (kind: WatchedKind) => void;
  readonly noted: () => void;
}

export interface DiscoveryTimes {
  /** Between two looks while a definition is there and not served yet. */
  readonly soonMs: number;
  /** Between two looks otherwise. */
  readonly laterMs: number;
}

/** How the watch of one kind is doing. */
export interface WatchReport extends WatchPlace {
  readonly state: ReflectorState;
}

interface Entry extends WatchPlace {
  readonly version: string;
  readonly reflector: Reflector<Content>;
  readonly abort: AbortController;
}

const DEFINITIONS: ResourceType = {
  group: "apiextensions.k8s.io",
  version: "v1",
  plural: "customresourcedefinitions",
  namespaced: false,
};
/** A kind of which objects are known must be missed this often, one look after another, before it counts as uninstalled. */
const TIMES_MISSED = 3;

/**
 * Runs a reflector for every kind and namespace. Kinds that need not be installed are looked for: at the start, when a CustomResourceDefinition comes or
 * changes (where we may see those), and from time to time.
 */
export class KindWatches {
  readonly #options: WatchesOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #missed = new Map<string, number>();
  readonly #defined = new Set<string>();
  #discovered = false;
  #discoveryFault: string | undefined;
  #look: () => void = () => {};

  constructor(options: WatchesOptions) {
    this.#options = options;
  }

  /** Everything that must be known is. */
  get loaded(): boolean {
    return this.#discovered && [...this.#entries.values()].every(isSettled);
  }

  /** Why it is not known yet which kinds are installed. */
  get discoveryFault(): string | undefined {
    return this.#discovered ? undefined : this.#discoveryFault;
  }

  reports(): readonly WatchReport[] {
    return [...this.#entries.values()].map(({ kind, namespace, reflector }) => ({ kind, namespace, state: reflector.state }));
  }

  /** Names of the kinds that are not installed. */
  absent(): readonly string[] {
    if (!this.#discovered) return [];
    const running = new Set([...this.#entries.values()].map(({ kind }) => kind));
    return this.#options.kinds.filter((kind) => !running.has(kind)).map(({ def }) => def.kind);
  }

  /** Opens every watch anew from where it is. */
  reopen(): void {
    for (const { reflector } of this.#entries.values()) reflector.reopen();
    this.#look();
  }

  async run(signal: AbortSignal): Promise<void> {
    for (const kind of this.#options.kinds) {
      if (kind.served === "always") this.#start(kind, kind.def.versions[0] ?? "v1", signal);
    }
    // A list of definitions is one of the whole cluster: who may look at some namespaces only does not ask for it.
    const done = this.#options.namespaces.length === 0 ? this.#definitions().run(signal) : undefined;
    while (!signal.aborted) {
      const soon = await this.#discover(signal);
      await this.#pause(soon ? this.#options.discovery.soonMs : this.#options.discovery.laterMs, signal);
    }
    for (const { abort } of this.#entries.values()) abort.abort();
    this.#entries.clear();
    this.#discovered = false;
    await done;
  }

  /** Looks which kinds are served. True where another look is due soon. */
  async #discover(signal: AbortSignal): Promise<boolean> {
    const wanted = this.#options.kinds.filter(({ served }) => served === "whenInstalled");
    try {
      const found = await installedKinds(
        this.#options.client,
        wanted.map(({ def }) => def),
        signal,
      );
      for (const kind of wanted) {
        const version = found.get(wantedKey(kind.def));
        if (version === undefined) this.#miss(kind);
        else this.#start(kind, version, signal);
      }
      this.#discovered = true;
      this.#options.noted();
      return wanted.some(({ def }) => !found.has(wantedKey(def)) && this.#defined.has(`/${def.plural}.${def.group}`));
    } catch (error) {
      this.#discoveryFault = messageOf(error);
      this.#options.noted();
      return true;
    }
  }

  #start(kind: WatchedKind, version: string, signal: AbortSignal): void {
    const { client, clock, log, times, namespaces, changed, noted } = this.#options;
    this.#missed.delete(kind.def.kind);
    for (const { namespace, fieldSelector } of placesOf(kind, namespaces)) {
      const id = `${kind.def.kind}/${namespace ?? ""}/${fieldSelector ?? ""}`;
      const before = this.#entries.get(id);
      if (before?.version === version) continue;
      before?.abort.abort();
      const abort = new AbortController();
      const reflector = new Reflector<Content>({
        client,
        type: { group: kind.def.group, version, plural: kind.def.plural, namespaced: kind.def.scope === "Namespaced" },
        selection: { namespace, fieldSelector },
        ...(kind.fields !== undefined && { fields: kind.fields }),
        clock,
        log,
        shape: kind.shape(version),
        changed: (change) => changed({ kind, namespace: namespace ?? nameSelected(fieldSelector) }, change),
        noted,
        ...(times !== undefined && { times }),
      });
      this.#entries.set(id, { kind, namespace, version, reflector, abort });
      void reflector.run(AbortSignal.any([signal, abort.signal]));
    }
  }

  /** A kind is not served. Where objects of it are known, a server that has just started may not have found it yet. */
  #miss(kind: WatchedKind): void {
    const running = [...this.#entries].filter(([, entry]) => entry.kind === kind);
    const missed = (this.#missed.get(kind.def.kind) ?? 0) + 1;
    this.#missed.set(kind.def.kind, missed);
    const known = running.some(([, { reflector }]) => reflector.state.objects > 0);
    if (running.length === 0 || (known && missed < TIMES_MISSED)) return;
    for (const [id, { abort }] of running) {
      abort.abort();
      this.#entries.delete(id);
    }
    this.#options.log.info({ kind: kind.def.kind }, "a kind is no longer installed in the cluster");
    this.#options.uninstalled(kind);
  }

  /** Names of the CustomResourceDefinitions there are, by metadata alone: their schemas are large. Where we may not see them, we look from time to time. */
  #definitions(): Reflector<true> {
    const { client, clock, log, times } = this.#options;
    return new Reflector<true>({
      client,
      type: DEFINITIONS,
      selection: { metadataOnly: true },
      clock,
      log,
      shape: () => true,
      changed: ({ upserts, deletes }) => {
        for (const key of upserts.keys()) this.#defined.add(key);
        for (const key of deletes) this.#defined.delete(key);
        this.#look();
      },
      ...(times !== undefined && { times }),
    });
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#options.clock.after(ms, resolve);
    const wake = (): void => resolve();
    this.#look = wake;
    signal.addEventListener("abort", wake, { once: true });
    return promise.finally(() => {
      cancel();
      signal.removeEventListener("abort", wake);
      this.#look = () => {};
    });
  }
}

/** Read once, or not for us to read. */
const isSettled = ({ kind, reflector: { state } }: Entry): boolean =>
  state.synced || (kind.dispensable && state.fault !== undefined && (state.fault.isForbidden || state.fault.isNotFound));

/** Where to look: everywhere, or in each of our namespaces. Of cluster-wide kinds only the Namespaces themselves can be had one by one. */
function placesOf(
  { def, fieldSelector }: WatchedKind,
  namespaces: readonly string[],
): readonly { readonly namespace: string | undefined; readonly fieldSelector: string | undefined }[] {
  if (namespaces.length === 0) return [{ namespace: undefined, fieldSelector }];
  if (def.scope === "Namespaced") return namespaces.map((namespace) => ({ namespace, fieldSelector }));
  if (def.kind !== "Namespace") return [];
  return namespaces.map((name) => ({ namespace: undefined, fieldSelector: `${NAME_IS}${name}` }));
}

const NAME_IS = "metadata.name=";

/** The one object a selector names, where it names one. */
const nameSelected = (fieldSelector: string | undefined): string | undefined =>
  fieldSelector?.startsWith(NAME_IS) === true ? fieldSelector.slice(NAME_IS.length) : undefined;
