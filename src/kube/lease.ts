import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { KubeClient } from "./kube-client.ts";
import { KubeError } from "./kube-error.ts";
import type { KubeObject, ResourceType } from "./resource-type.ts";

export interface LeaseOptions {
  readonly client: Pick<KubeClient, "get" | "create" | "update">;
  readonly namespace: string;
  /** Of the Lease: one for each thing that only one replica may do. */
  readonly name: string;
  /** Of this replica: its pod. */
  readonly holder: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Who does not renew for this long has lost it. */
  readonly durationMs?: number;
}

/** What is known of a lease. */
export interface LeaseState {
  readonly leading: boolean;
  readonly holder: string;
}

const LEASES: ResourceType = { group: "coordination.k8s.io", version: "v1", plural: "leases", namespaced: true };
const DURATION_MS = 30_000;

interface Seen {
  readonly holder: string;
  readonly renewTime: string;
  /** When we saw this renewal first, by our own clock: clocks of replicas differ, so their times are compared with themselves only. */
  readonly at: number;
}

/**
 * Leader election by a Lease, as other Kubernetes controllers do it: who holds it renews it; who finds it not renewed for its whole duration takes it,
 * by a conditional write that one of several wins. A holder that cannot renew stops leading before anybody may take over.
 */
export class LeaderLease {
  readonly #options: LeaseOptions;
  readonly #durationMs: number;
  #seen: Seen | undefined;
  #renewedAt: number | undefined;
  #object: KubeObject | undefined;
  #refusal = "";

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#durationMs = options.durationMs ?? DURATION_MS;
  }

  get state(): LeaseState {
    return { leading: this.#renewedAt !== undefined, holder: this.#seen?.holder ?? "" };
  }

  /** Runs `lead` whenever this replica leads, with a signal that aborts when it no longer does. Until the signal aborts; then the lease is given back. */
  async run(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { clock, log, name } = this.#options;
    let term: AbortController | undefined;
    while (!signal.aborted) {
      await this.#within(this.#durationMs / 4, (limit) => this.#turn(limit)).catch((error) => this.#tell(error));
      const leading = this.#isValid();
      if (leading && term === undefined) {
        term = new AbortController();
        log.info({ lease: name }, "leading now");
        void this.#lead(lead, term.signal);
      } else if (!leading && term !== undefined) {
        log.warn({ lease: name, holder: this.state.holder }, "no longer leading");
        term.abort();
        term = undefined;
      }
      await clock.sleep(this.#durationMs / 4, signal).catch(() => undefined);
    }
    term?.abort();
    if (this.#renewedAt === undefined) return;
    await this.#within(this.#durationMs / 4, (limit) => this.#write("", { seconds: 1, signal: limit })).catch(() => undefined);
  }

  /** Who may not have the lease never leads, and should know why; other faults pass. */
  #tell(error: unknown): void {
    const { log, name } = this.#options;
    const isNews = error instanceof KubeError && error.isForbidden && error.message !== this.#refusal;
    if (isNews) this.#refusal = error.message;
    log[isNews ? "warn" : "debug"]({ lease: name, reason: messageOf(error) }, "the lease could not be asked for or renewed");
  }

  /** A server that hangs must not keep a term going: no request lasts longer than a renewal may. */
  async #within(ms: number, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const limit = new AbortController();
    const cancel = this.#options.clock.after(ms, () => limit.abort(new Error("the API server takes too long")));
    await work(limit.signal).finally(cancel);
  }

  async #lead(lead: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    try {
      await lead(signal);
    } catch (error) {
      if (!signal.aborted) this.#options.log.error({ lease: this.#options.name, reason: error }, "what the leader does ended with a fault");
    }
  }

  /** Half of the duration without a renewal ends a term; others wait for the whole of it. */
  #isValid(): boolean {
    if (this.#renewedAt !== undefined && this.#options.clock.monotonic() - this.#renewedAt >= this.#durationMs / 2)
      this.#renewedAt = undefined;
    return this.#renewedAt !== undefined;
  }

  async #turn(signal: AbortSignal): Promise<void> {
    const { client, clock, holder, namespace, name } = this.#options;
    try {
      this.#object = await client.get(LEASES, { namespace, name }, signal);
    } catch (error) {
      if (!(error instanceof KubeError && error.isNotFound)) throw error;
      this.#object = undefined;
      return this.#write(holder, { seconds: this.#durationMs / 1000, signal });
    }
    const spec = (this.#object.spec ?? {}) as { readonly holderIdentity?: string; readonly renewTime?: string };
    const [held, renewTime] = [spec.holderIdentity ?? "", spec.renewTime ?? ""];
    if (this.#seen?.holder !== held || this.#seen.renewTime !== renewTime) this.#seen = { holder: held, renewTime, at: clock.monotonic() };
    if (held !== holder) this.#renewedAt = undefined;
    const free = held === "" || held === holder || clock.monotonic() - this.#seen.at >= this.#durationMs;
    if (free) await this.#write(holder, { seconds: this.#durationMs / 1000, signal });
  }

  async #write(holder: string, { seconds, signal }: { readonly seconds: number; readonly signal: AbortSignal }): Promise<void> {
    const { client, clock, namespace, name } = this.#options;
    const before = (this.#object?.spec ?? {}) as {
      readonly holderIdentity?: string;
      readonly acquireTime?: string;
      readonly leaseTransitions?: number;
    };
    const now = `${new Date(clock.now()).toISOString().slice(0, -1)}000Z`;
    const same = before.holderIdentity === holder;
    const spec = {
      holderIdentity: holder,
      leaseDurationSeconds: Math.max(1, Math.round(seconds)),
      acquireTime: same ? (before.acquireTime ?? now) : now,
      renewTime: now,
      leaseTransitions: (before.leaseTransitions ?? 0) + (same || this.#object === undefined ? 0 : 1),
    };
    const body = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: this.#object?.metadata ?? { name, namespace }, spec };
    const asked = clock.monotonic();
    this.#object =
      this.#object === undefined ? await client.create(LEASES, body, { signal }) : await client.update(LEASES, body, { signal });
    this.#renewedAt = holder === "" ? undefined : asked;
    this.#seen = { holder, renewTime: now, at: asked };
  }
}
