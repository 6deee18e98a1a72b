import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { createSlice } from "../../base/slice.ts";
import type { ObjectReport, StatusSource } from "../../config/status/object-report.ts";
import { wantedStatus } from "../../config/status/wanted-status.ts";
import type { KubeClient, ListOptions } from "../../kube/kube-client.ts";
import { KubeError } from "../../kube/kube-error.ts";
import { type KubeObject, placeKey, type ResourceType, resourcePath } from "../../kube/resource-type.ts";
import { ReachedObjects } from "./reached-objects.ts";
import type { ReplicaLeases } from "./replica-leases.ts";
import { replicaReport, SharedReaches } from "./replica-report.ts";
import { StatusQueue, type WorkResult } from "./status-queue.ts";
import { resourceOf, writeStatus } from "./write-status.ts";

export interface StatusKeeperOptions {
  readonly client: KubeClient;
  readonly source: StatusSource;
  /** Only these may be read; empty: all. */
  readonly namespaces: readonly string[];
  /** Undefined where proxies are not followed. */
  readonly replicas: ReplicaLeases | undefined;
  readonly rate: { readonly perSecond: number; readonly burst: number; readonly workers: number };
  /** Between two looks. */
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly log: Log;
}

const PAGE = 250;
/** How long what other replicas say is waited for at the most before statuses are written. */
const PATIENCE_MS = 10_000;

/**
 * Keeps the status of objects current: looks at them when there may be news, and writes what differs as long as this replica leads. What was written is
 * remembered, so that nothing is asked of the API server while nothing is news.
 */
export class StatusKeeper {
  readonly #options: StatusKeeperOptions;
  readonly #queue: StatusQueue;
  readonly #reaches = new SharedReaches();
  /** The revisions this replica writes for. */
  readonly #led = new Set<string>();
  /** What is to be said of each object that is led. */
  #reports = new Map<string, ObjectReport>();
  /** Objects that all proxies have had, and how that was. */
  readonly #reached = new ReachedObjects();
  /** Statuses as they were when this replica began to lead. */
  #found: ReadonlyMap<string, unknown> = new Map();
  #wake: () => void = () => {};
  #noted = true;
  #fault = "";

  constructor(options: StatusKeeperOptions) {
    this.#options = options;
    const { clock, rate, source } = options;
    this.#queue = new StatusQueue({ clock, ...rate, work: (key, signal) => this.#work(key, signal), waiting: source.metrics.waiting });
    source.follow(() => this.note());
  }

  /** There may be news. */
  note(): void {
    this.#noted = true;
    this.#wake();
  }

  /** Looks whenever there may be news, and from time to time, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, intervalMs, log } = this.#options;
    const queue = this.#queue.run(signal);
    while (!signal.aborted) {
      this.#noted = false;
      const next = await this.#look(signal).catch((error: unknown) => {
        log.error({ reason: messageOf(error) }, "the status of objects could not be worked out");
        return LATER_MS;
      });
      // What follows closely is looked at together.
      await clock.sleep(intervalMs, signal).catch(() => undefined);
      if (!this.#noted) await this.#pause(next, signal);
    }
    await queue;
  }

  /** Writes the statuses of objects that are labelled for these revisions (empty: for none) until the signal aborts. */
  async lead(revisions: readonly string[], signal: AbortSignal): Promise<void> {
    const { clock, replicas } = this.#options;
    for (let waited = 0; replicas?.isReady === false && waited < PATIENCE_MS && !signal.aborted; waited += 250)
      await clock.sleep(250, signal).catch(() => undefined);
    await this.#find(signal);
    if (signal.aborted) return;
    for (const revision of revisions) this.#led.add(revision);
    this.note();
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    for (const revision of revisions) this.#led.delete(revision);
    for (const [key, { head }] of [...this.#reports]) if (revisions.includes(head.revision)) this.#forget(key);
  }

  /** Reads all statuses once, a page at a time, so that those that are right need not be asked for one by one. */
  async #find(signal: AbortSignal): Promise<void> {
    const { source, namespaces, log } = this.#options;
    const types = new Map([...source.look().objects].map((report) => [report.ref.kind, resourceOf(report)]));
    const found = new Map<string, unknown>();
    for (const [kind, type] of types) {
      if (type === undefined) continue;
      try {
        for (const namespace of namespaces.length === 0 ? [undefined] : namespaces)
          for await (const { metadata, status } of this.#all(type, { namespace, signal }))
            found.set(`${kind}/${placeKey(metadata)}`, status);
      } catch (error) {
        log.debug({ path: resourcePath(type), reason: messageOf(error) }, "statuses cannot be read together; each is asked for");
      }
    }
    this.#found = new Map([...this.#found, ...found]);
    this.#reached.find(found);
  }

  async *#all(type: ResourceType, options: Pick<ListOptions, "namespace" | "signal">): AsyncGenerator<KubeObject> {
    let next = "";
    do {
      const page = await this.#options.client.list(type, { ...options, limit: PAGE, ...(next !== "" && { continue: next }) });
      yield* page.items;
      next = page.continue;
    } while (next !== "");
  }

  /** Works out what is to be said, tells the other replicas, and lines up what is news. Gives how long to wait where there is none. */
  async #look(signal: AbortSignal): Promise<number> {
    const { clock, replicas, source } = this.#options;
    const now = source.look();
    const slice = createSlice(clock);
    const objects: ObjectReport[] = [];
    for (const report of now.objects) {
      objects.push(report);
      const rest = slice();
      if (rest !== undefined) await rest;
    }
    const digests = this.#reaches.hold(objects);
    const wait = (await replicas?.tell(replicaReport(now, objects, digests), signal)) ?? LATER_MS;
    if (this.#led.size === 0) return wait;
    this.#reaches.hear(replicas?.others() ?? new Map());
    const seen = new Set<string>();
    for (const object of objects) {
      if (!this.#led.has(object.head.revision)) continue;
      seen.add(object.key);
      this.#forgetEarlier(object);
      const known = this.#reports.get(object.key);
      const report = { ...object, reach: this.#reached.of(object, this.#reaches.of(object)) };
      if (known !== undefined && isSame(report, known)) continue;
      this.#reports.set(object.key, report);
      this.#lineUp(report);
      const rest = slice();
      if (rest !== undefined) await rest;
    }
    for (const key of [...this.#reports.keys()]) if (!seen.has(key)) this.#forget(key);
    this.#found = new Map();
    await replicas?.tidy(signal);
    return wait;
  }

  #lineUp(report: ObjectReport): void {
    const found = this.#found.get(report.key);
    if (found !== undefined && wantedStatus(report, found, this.#options.clock.now()) === undefined) this.#queue.delete(report.key);
    else this.#queue.add(report.key);
  }

  /** One that was made anew has no status, though it may be what it was. */
  #forgetEarlier({ key, head }: ObjectReport): void {
    const known = this.#reports.get(key);
    if (known !== undefined && known.head.createdAt !== head.createdAt) this.#forget(key);
  }

  #forget(key: string): void {
    this.#reports.delete(key);
    this.#reached.delete(key);
    this.#queue.delete(key);
  }

  async #work(key: string, signal: AbortSignal): Promise<WorkResult> {
    const { client, clock, source } = this.#options;
    const report = this.#reports.get(key);
    if (report === undefined) return "done";
    try {
      source.metrics.wrote(await writeStatus(report, { client, now: clock.now(), signal }));
      this.#fault = "";
      return "done";
    } catch (error) {
      return signal.aborted ? "done" : this.#failed(key, error);
    }
  }

  /** What one object meets, its kind or all may meet too; it is said once, and tried again less and less often. */
  #failed(key: string, error: unknown): WorkResult {
    const { log, source } = this.#options;
    const fault = error instanceof KubeError ? error : undefined;
    if (fault?.isNotFound === true) {
      source.metrics.wrote("gone");
      return "done";
    }
    source.metrics.failed(fault?.reason ?? "Error");
    const after = fault?.retryAfterMs === undefined ? {} : { afterMs: fault.retryAfterMs };
    if (fault?.isConflict === true) return { putOff: "key", ...after };
    const message = messageOf(error);
    if (message !== this.#fault)
      log.warn({ object: key, reason: message }, "the status of an object could not be written; it is tried again later");
    this.#fault = message;
    const putOff = fault?.isForbidden === true ? "kind" : fault === undefined || fault.isTransport || fault.status >= 429 ? "all" : "key";
    return { putOff, ...after };
  }

  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await this.#options.clock.sleep(Math.min(ms, LATER_MS), AbortSignal.any([signal, woken.signal])).catch(() => undefined);
    this.#wake = () => {};
  }
}

/** Replicas that are gone are not heard of: they are looked for. */
const LATER_MS = 10_000;

/** Whether two reports say the same. Most are made of the very same parts. */
function isSame(a: ObjectReport, b: ObjectReport): boolean {
  if (a.head.generation !== b.head.generation || a.state !== b.state) return false;
  return isEqual(a.reach, b.reach) && isEqual(a.problems, b.problems);
}

const isEqual = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b);
