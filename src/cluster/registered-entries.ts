import { BackOff } from "../base/back-off.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { KubeError } from "../kube/kube-error.ts";
import { type KubeObject, placeKey, type ResourceType } from "../kube/resource-type.ts";
import {
  type EntryDocument,
  type EntryPlace,
  type HealthCondition,
  REGISTRATION,
  type RegistrationBoard,
} from "../sources/registered/registration-board.ts";
import { entryChange, healthThere, isAbandoned, newEntry, withHealth } from "./entry-change.ts";

export interface RegisteredEntriesOptions {
  readonly client: Pick<KubeClient, "get" | "listEach" | "create" | "update" | "patch" | "delete">;
  /** Those that are looked at; none: all. */
  readonly namespaces: readonly string[];
  /** This replica, as entries name it. */
  readonly controller: string;
  /** How long a workload may be away. */
  readonly graceMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

const GROUP = "networking.istio.io";
const ENTRIES: ResourceType = { group: GROUP, version: "v1", plural: "workloadentries", namespaced: true };
const GROUPS: ResourceType = { group: GROUP, version: "v1", plural: "workloadgroups", namespaced: true };
const AT_ONCE = 8;
const RETRY = { firstMs: 250, mostMs: 30_000 };
const PAGE = 500;
/** Istio takes an entry for abandoned that has been connected for 45 minutes, since its own connections never last that long. Ours do: we say so in time. */
const LOST_MS = 45 * 60_000;
const REMIND_MS = LOST_MS / 3;
const SWEEP_IN_GRACES = 10;
const LEAST_SWEEP_MS = 1_000;

/** One thing that is to be true of an entry. */
type Task =
  | { readonly kind: "entry"; readonly entry: EntryDocument | undefined }
  | { readonly kind: "health"; readonly health: HealthCondition | undefined };

interface Job {
  readonly place: EntryPlace;
  readonly task: Task;
  readonly backOff: BackOff;
}

/**
 * The WorkloadEntries of workloads that are connected to this replica, as objects of the cluster: other replicas, and other control planes, know them from there.
 * Takes away those that nobody looks after any more, whoever wrote them.
 */
export class RegisteredEntries implements RegistrationBoard {
  readonly #options: RegisteredEntriesOptions;
  /** What is to be true and is not yet, the last of each entry. */
  readonly #jobs = new Map<string, Job>();
  readonly #waiting = new Set<string>();
  readonly #busy = new Set<string>();
  /** Of those that are connected here, what was said last. */
  readonly #connected = new Map<string, EntryDocument>();
  /** Of health that was said here, when: what somebody said later is not ours to take away. */
  readonly #reported = new Map<string, string>();
  readonly #signal: AbortSignal;
  #fault = "";

  constructor(options: RegisteredEntriesOptions, signal: AbortSignal) {
    this.#options = options;
    this.#signal = signal;
    const { clock, graceMs } = options;
    const every = (ms: number, act: () => void): void => {
      const cancel = clock.after(ms, () => {
        act();
        if (!signal.aborted) every(ms, act);
      });
      signal.addEventListener("abort", cancel, { once: true });
    };
    every(Math.max(SWEEP_IN_GRACES * graceMs, LEAST_SWEEP_MS), () => void this.#sweep().catch((error) => this.#tell(error)));
    every(REMIND_MS, () => this.#remind());
  }

  post(place: EntryPlace, entry: EntryDocument | undefined): void {
    const key = placeKey(place);
    if (entry?.metadata.annotations[REGISTRATION.connectedAt] === undefined) this.#connected.delete(key);
    else this.#connected.set(key, entry);
    this.#add(key, { place, task: { kind: "entry", entry }, backOff: new BackOff(RETRY) });
  }

  report(place: EntryPlace, health: HealthCondition | undefined): void {
    this.#add(placeKey(place), { place, task: { kind: "health", health }, backOff: new BackOff(RETRY) });
  }

  #add(key: string, job: Job): void {
    if (this.#signal.aborted) return;
    this.#jobs.set(key, job);
    this.#waiting.add(key);
    this.#next();
  }

  #next(): void {
    for (const key of this.#waiting) {
      if (this.#busy.size >= AT_ONCE) return;
      const job = this.#jobs.get(key);
      if (job === undefined || this.#busy.has(key)) continue;
      this.#waiting.delete(key);
      this.#busy.add(key);
      void this.#work(key, job);
    }
  }

  async #work(key: string, job: Job): Promise<void> {
    const isLast = (): boolean => this.#jobs.get(key) === job;
    try {
      await (job.task.kind === "entry" ? this.#bring(job.place, job.task.entry) : this.#say(job.place, job.task.health));
      this.#fault = "";
      if (isLast()) this.#jobs.delete(key);
    } catch (error) {
      // That somebody else wrote at the same time is no fault.
      if (!(error instanceof KubeError && error.isConflict)) this.#tell(error);
      this.#options.clock.after(job.backOff.next(), () => {
        if (this.#signal.aborted || !isLast()) return;
        this.#waiting.add(key);
        this.#next();
      });
    }
    this.#busy.delete(key);
    this.#next();
  }

  #tell(error: unknown): void {
    const reason = messageOf(error);
    if (reason !== this.#fault && !this.#signal.aborted)
      this.#options.log.warn(
        { reason },
        "WorkloadEntries of workloads that register themselves cannot be written; other replicas do not know them",
      );
    this.#fault = reason;
  }

  async #bring(place: EntryPlace, entry: EntryDocument | undefined): Promise<void> {
    const { client, controller } = this.#options;
    const held = await this.#get(place);
    const change = entryChange(entry, held, controller);
    if (change.do === "delete") return this.#delete(held);
    if (change.do === "create" && entry !== undefined) {
      const owner = await this.#group(entry);
      await client.create(ENTRIES, newEntry(entry, owner), { fieldManager: "istiod", signal: this.#signal });
    }
    if (change.do === "replace") await client.update(ENTRIES, change.object, { fieldManager: "istiod", signal: this.#signal });
    const [health] = entry?.status?.conditions ?? [];
    if (health !== undefined)
      await this.#writeHealth(place, health, (there) => there.metadata.annotations?.[REGISTRATION.controller] === controller);
  }

  async #say(place: EntryPlace, health: HealthCondition | undefined): Promise<void> {
    const key = placeKey(place);
    const before = this.#reported.get(key);
    // Where another replica has heard of it since, that counts.
    const isOurs = (there: KubeObject): boolean => health !== undefined || healthThere(there.status)?.lastProbeTime === before;
    await this.#writeHealth(place, health, isOurs);
    if (health === undefined) this.#reported.delete(key);
    else this.#reported.set(key, health.lastProbeTime);
  }

  async #writeHealth(place: EntryPlace, health: HealthCondition | undefined, isOurs: (there: KubeObject) => boolean): Promise<void> {
    const held = await this.#get(place);
    if (held === undefined || !isOurs(held)) return;
    const conditions = withHealth(held.status, health);
    if (conditions === undefined) return;
    const { resourceVersion, uid } = held.metadata;
    const body = { metadata: { resourceVersion, uid }, status: { conditions } };
    const patch = { as: "merge", body, fieldManager: "istiod-health", signal: this.#signal } as const;
    await this.#options.client.patch(ENTRIES, { ...place, subresource: "status" }, patch);
  }

  async #get(place: EntryPlace): Promise<KubeObject | undefined> {
    return this.#options.client.get(ENTRIES, place, this.#signal).catch(absentOf);
  }

  async #group({ metadata }: EntryDocument): Promise<KubeObject | undefined> {
    const name = metadata.annotations[REGISTRATION.group] ?? "";
    return this.#options.client.get(GROUPS, { namespace: metadata.namespace, name }, this.#signal).catch(absentOf);
  }

  async #delete(held: KubeObject | undefined): Promise<void> {
    if (held === undefined) return;
    const { name, namespace = "", uid, resourceVersion } = held.metadata;
    const preconditions = { ...(uid !== undefined && { uid }), ...(resourceVersion !== undefined && { resourceVersion }) };
    await this.#options.client.delete(ENTRIES, { namespace, name }, { preconditions, signal: this.#signal }).catch(absentOf);
  }

  /** Says of those that are connected that they still are. */
  #remind(): void {
    const now = new Date(this.#options.clock.now()).toISOString();
    for (const entry of this.#connected.values()) {
      const { metadata } = entry;
      const annotations = { ...metadata.annotations, [REGISTRATION.connectedAt]: now };
      this.post(metadata, { ...entry, metadata: { ...metadata, annotations } });
    }
  }

  async #sweep(): Promise<void> {
    const { client, namespaces, clock, graceMs, log } = this.#options;
    for (const namespace of namespaces.length === 0 ? [undefined] : namespaces) {
      const found: KubeObject[] = [];
      let next: string | undefined;
      do {
        const options = { namespace, limit: PAGE, metadataOnly: true, continue: next, signal: this.#signal };
        const head = await client.listEach(ENTRIES, options, (one) => {
          if (isAbandoned(one, { now: clock.now(), graceMs, lostMs: LOST_MS })) found.push(one);
        });
        next = head.continue || undefined;
      } while (next !== undefined);
      for (const one of found) {
        log.info({ entry: placeKey(one.metadata) }, "a workload that registered itself is gone, and whoever looked after it");
        await this.#delete(one);
      }
    }
  }
}

function absentOf(error: unknown): undefined {
  if (!(error instanceof KubeError && error.isNotFound)) throw error;
}
