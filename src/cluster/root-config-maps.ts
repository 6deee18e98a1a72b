import { BackOff } from "../base/back-off.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import { contentHash } from "../base/hash.ts";
import type { Labels } from "../base/labels.ts";
import type { Log } from "../base/log.ts";
import { admittedNamespaces } from "../config/store/admitted-namespaces.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { KubeError } from "../kube/kube-error.ts";
import { Reflector } from "../kube/reflector.ts";
import type { KubeObject, ResourceType } from "../kube/resource-type.ts";
import type { PublishedRoots } from "../serve/cluster-link.ts";

/** What is kept in every namespace: a text that pods mount. */
interface KeptText {
  /** Of the ConfigMap. */
  readonly name: string;
  readonly key: string;
  /** What it holds, in words. */
  readonly about: string;
  /** Empty as long as there is nothing to be kept. */
  textOf(published: PublishedRoots): string;
  /** Equal for texts that say the same. */
  hashOf(text: string): string;
}

/** Name and key of the ConfigMap with which pods verify istiod and each other, as in Istio. */
export const ROOTS_CONFIG_MAP = "istio-ca-root-cert";

const ROOTS: KeptText = {
  name: ROOTS_CONFIG_MAP,
  key: "root-cert.pem",
  about: "roots",
  textOf: (published) => published.roots(),
  hashOf: hashOfRoots,
};

/** The same for certificates that the CA has revoked: pods mount it where it is there. */
const REVOKED: KeptText = {
  name: "istio-ca-crl",
  key: "ca-crl.pem",
  about: "lists of revoked certificates",
  textOf: (published) => published.revoked(),
  hashOf: (text) => contentHash(text.trim()),
};
/** As Istio marks its own. */
const LABELS = { "istio.io/config": "true" };
const CONFIG_MAPS: ResourceType = { group: "", version: "v1", plural: "configmaps", namespaced: true };
const NAMESPACES: ResourceType = { group: "", version: "v1", plural: "namespaces", namespaced: false };
/** Nothing of a mesh runs there. `kube-system` is not among them: agents of nodes do. */
const NEVER = new Set(["kube-public", "kube-node-lease", "local-path-storage"]);
/** Between two writes: at most twenty a second, however many namespaces there are. */
const PACE_MS = 50;
const LOOK_MS = 1_000;
const RETRY = { firstMs: 1_000, mostMs: 60_000 };
/** What is overwritten sooner than this after we wrote it is claimed by somebody else. */
const CALM_MS = 600_000;
/** Between two attempts to have the last word against such a one. */
const CONTEST = { firstMs: 1_000, mostMs: 3_600_000 };

export interface RootConfigMapsOptions {
  readonly client: Pick<KubeClient, "listEach" | "watch" | "create" | "patch">;
  /** Only these; empty: all. */
  readonly namespaces: readonly string[];
  readonly published: PublishedRoots;
  readonly clock: Clock;
  readonly log: Log;
  readonly random?: () => number;
}

/**
 * Keeps the ConfigMap with the roots in every namespace: made where it is missing, corrected where it holds others, both at a bounded rate. One that holds the same
 * certificates in another order or form is left alone, since another control plane with the same CA may have written it. One whose CA is another puts its own
 * roots back each time: that is told, and it is left to it for longer and longer, up to an hour. Only one replica at a time should.
 */
export async function keepRootConfigMaps(options: RootConfigMapsOptions, signal: AbortSignal): Promise<void> {
  await keep(options, ROOTS, signal);
}

/** The same for what the CA has revoked, from when there is such a list: most meshes have none, and are spared following it. One that is taken away stays as it was last. */
export async function keepRevocationConfigMaps(options: RootConfigMapsOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && REVOKED.textOf(options.published) === "") await options.clock.sleep(LOOK_MS, signal).catch(() => undefined);
  if (!signal.aborted) await keep(options, REVOKED, signal);
}

async function keep(options: RootConfigMapsOptions, kept: KeptText, signal: AbortSignal): Promise<void> {
  const keeper = new Keeper(options, kept);
  await Promise.all([...keeper.reflectors.map((reflector) => reflector.run(signal)), keeper.run(signal)]);
}

class Keeper {
  readonly #options: RootConfigMapsOptions;
  readonly #kept: KeptText;
  readonly #labels = new Map<string, Labels>();
  /** Hash of what a namespace has. */
  readonly #held = new Map<string, string>();
  readonly #waiting = new Set<string>();
  readonly #failed = new Map<string, { readonly backOff: BackOff; readonly retryAt: number }>();
  /** When we last wrote to a namespace, and how often somebody else took that back at once. */
  readonly #written = new Map<string, number>();
  readonly #contests = new Map<string, BackOff>();
  readonly reflectors: readonly Pick<Reflector<string>, "run" | "state">[];
  #wake: () => void = () => {};
  #wanted = { text: "", hash: "", key: "" };
  #isAdmitted: (namespace: string) => boolean = () => false;
  #fault = "";
  #hasToldOfOther = false;

  constructor(options: RootConfigMapsOptions, kept: KeptText) {
    this.#options = options;
    this.#kept = kept;
    const { namespaces } = options;
    for (const name of namespaces) this.#labels.set(name, {});
    const places = namespaces.length === 0 ? [undefined] : namespaces;
    this.reflectors = [...places.map((one) => this.#configMaps(one)), ...(namespaces.length === 0 ? [this.#namespaces()] : [])];
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#look();
      this.#tellBlindness();
      await this.#pause(this.#isReady() ? await this.#work(signal) : LOOK_MS, signal);
    }
  }

  /** Nothing is written before it is known what is there. */
  #isReady(): boolean {
    return this.#wanted.text !== "" && this.reflectors.every(({ state }) => state.synced);
  }

  /** Where namespaces or ConfigMaps cannot be read, nothing is written: that is worth a word. */
  #tellBlindness(): void {
    const fault = this.reflectors.find(({ state }) => !state.synced && state.fault !== undefined)?.state.fault?.message;
    if (fault !== undefined) this.#tell(fault);
  }

  #tell(fault: string, place: { readonly namespace?: string } = {}): void {
    if (fault !== this.#fault) this.#options.log.warn({ ...place, reason: fault }, `ConfigMap ${this.#kept.name} cannot be kept current`);
    this.#fault = fault;
  }

  /** Other roots or selectors concern every namespace. */
  #look(): void {
    const { published, namespaces } = this.#options;
    const [text, selectors] = [this.#kept.textOf(published), published.selectors()];
    const key = JSON.stringify([text, selectors.map(({ matchLabels, matchExpressions }) => ({ matchLabels, matchExpressions }))]);
    if (key === this.#wanted.key) return;
    this.#wanted = { text, hash: this.#kept.hashOf(text), key };
    this.#hasToldOfOther = false;
    // Where namespaces are named, their labels may not be ours to read.
    this.#isAdmitted = (name) =>
      namespaces.length > 0 || (!NEVER.has(name) && admittedNamespaces(selectors, (one) => this.#labels.get(one)).admits(name));
    for (const name of this.#labels.keys()) this.#waiting.add(name);
  }

  /** Brings the next that waits up to date; gives how long to pause. */
  async #work(signal: AbortSignal): Promise<number> {
    const { clock } = this.#options;
    for (const namespace of this.#waiting) {
      const before = this.#failed.get(namespace);
      if ((before?.retryAt ?? 0) > clock.monotonic()) continue;
      // Before it is written: what is heard of it meanwhile is news.
      this.#waiting.delete(namespace);
      this.#failed.delete(namespace);
      if (!this.#needs(namespace)) continue;
      try {
        await this.#write(namespace, signal);
        if (before !== undefined) this.#fault = "";
      } catch (error) {
        if (!signal.aborted) this.#putOff(namespace, { reason: messageOf(error), backOff: before?.backOff ?? this.#backOff(RETRY) });
      }
      return PACE_MS;
    }
    return LOOK_MS;
  }

  /** One that cannot be written is tried again later and less often, and keeps none of the others waiting. */
  #putOff(namespace: string, { reason, backOff }: { readonly reason: string; readonly backOff: BackOff }): void {
    this.#waiting.add(namespace);
    this.#wait(namespace, backOff);
    this.#tell(reason, { namespace });
  }

  #wait(namespace: string, backOff: BackOff): void {
    this.#failed.set(namespace, { backOff, retryAt: this.#options.clock.monotonic() + backOff.next() });
  }

  #backOff(times: typeof RETRY): BackOff {
    return new BackOff({ ...times, random: this.#options.random ?? Math.random });
  }

  /** Takes in what a namespace has. Somebody who made a mistake is put right at once; somebody who insists is not fought. */
  #heard(namespace: string, hash: string): void {
    const { clock, log } = this.#options;
    const isOverwritten = this.#held.get(namespace) === this.#wanted.hash && hash !== this.#wanted.hash;
    this.#held.set(namespace, hash);
    if (!isOverwritten) return;
    const isContested = clock.monotonic() - (this.#written.get(namespace) ?? Number.NEGATIVE_INFINITY) < CALM_MS;
    const contest = isContested ? this.#contests.get(namespace) : undefined;
    if (contest !== undefined) this.#wait(namespace, contest);
    else this.#contests.set(namespace, this.#backOff(CONTEST));
    if (contest === undefined || this.#hasToldOfOther) return;
    this.#hasToldOfOther = true;
    log.warn(
      { namespace },
      `somebody else keeps other ${this.#kept.about} in ConfigMap ${this.#kept.name}: control planes of one cluster are to share a CA (Secret cacerts); it is left to them for longer and longer`,
    );
  }

  #needs(namespace: string): boolean {
    return this.#labels.has(namespace) && this.#isAdmitted(namespace) && this.#held.get(namespace) !== this.#wanted.hash;
  }

  async #write(namespace: string, signal: AbortSignal): Promise<void> {
    const { client, clock, log } = this.#options;
    const { text, hash } = this.#wanted;
    const { name, key, about } = this.#kept;
    const data = { [key]: text };
    const options = { fieldManager: "istiod", signal };
    const before = this.#held.get(namespace);
    this.#held.set(namespace, hash);
    this.#written.set(namespace, clock.monotonic());
    const correct = (): Promise<KubeObject> => client.patch(CONFIG_MAPS, { namespace, name }, { ...options, as: "merge", body: { data } });
    try {
      if (before !== undefined) await correct();
      else {
        const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace, labels: LABELS }, data };
        await client.create(CONFIG_MAPS, object, options).catch((error: unknown) => {
          if (error instanceof KubeError && error.isConflict) return correct();
          throw error;
        });
      }
    } catch (error) {
      if (before === undefined) this.#held.delete(namespace);
      else this.#held.set(namespace, before);
      if (!isLeaving(error)) throw error;
      return;
    }
    log.debug({ namespace }, `wrote the ConfigMap with the ${about}`);
  }

  #configMaps(namespace: string | undefined): Pick<Reflector<string>, "run" | "state"> {
    const { client, clock, log } = this.#options;
    return new Reflector<string>({
      client,
      type: CONFIG_MAPS,
      selection: { namespace, fieldSelector: `metadata.name=${this.#kept.name}` },
      clock,
      log,
      shape: ({ data }) => {
        const text = (data as Readonly<Record<string, unknown>> | undefined)?.[this.#kept.key];
        return this.#kept.hashOf(typeof text === "string" ? text : "");
      },
      changed: ({ upserts, deletes }) => {
        for (const [key, hash] of upserts) this.#heard(namespaceOf(key), hash);
        for (const key of deletes) this.#held.delete(namespaceOf(key));
        this.#note([...upserts.keys(), ...deletes].map(namespaceOf));
      },
      noted: () => this.#wake(),
    });
  }

  #namespaces(): Pick<Reflector<string>, "run" | "state"> {
    const { client, clock, log } = this.#options;
    return new Reflector<Labels>({
      client,
      type: NAMESPACES,
      selection: { metadataOnly: true },
      clock,
      log,
      shape: ({ metadata }) => (metadata.deletionTimestamp === undefined ? (metadata.labels ?? {}) : undefined),
      changed: ({ upserts, deletes }) => {
        for (const [key, labels] of upserts) this.#labels.set(key.slice(1), labels);
        for (const key of deletes) this.#labels.delete(key.slice(1));
        this.#note([...upserts.keys()].map((key) => key.slice(1)));
      },
      noted: () => this.#wake(),
    });
  }

  #note(namespaces: readonly string[]): void {
    for (const name of namespaces) this.#waiting.add(name);
    this.#wake();
  }

  /** Waits, though not longer than until something is heard of, unless it is the pause between two writes. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const heard = new AbortController();
    if (ms === LOOK_MS) this.#wake = () => heard.abort();
    await this.#options.clock.sleep(ms, AbortSignal.any([signal, heard.signal])).catch(() => undefined);
    this.#wake = () => {};
  }
}

const namespaceOf = (key: string): string => key.slice(0, key.indexOf("/"));

/** The same for the same certificates, in whatever order and with whatever between them. */
export function hashOfRoots(text: string): string {
  const found = text.matchAll(/-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----/g);
  return contentHash([...new Set([...found].map(([, body]) => (body ?? "").replace(/\s+/g, "")))].sort().join(","));
}

/** The namespace is gone or going. */
const isLeaving = (error: unknown): boolean =>
  error instanceof KubeError && (error.isNotFound || (error.isForbidden && error.message.includes("being terminated")));
