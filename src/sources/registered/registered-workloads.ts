import { isIP } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { contentHash } from "../../base/hash.ts";
import type { Log } from "../../base/log.ts";
import type { ConfigSource, RawObject, SourceEvent } from "../../config/object.ts";
import { type Claim, documentOf, type GroupTemplate, type Registration, registrationName } from "./registration.ts";
import type { EntryDocument, RegistrationBoard } from "./registration-board.ts";
import type { RegistrationStore } from "./registration-file.ts";

/** Why a workload may not register itself. */
export class RegistrationRefusal extends Error {
  override readonly name = "RegistrationRefusal";
  readonly reason: "no group" | "identity" | "address" | "too many";

  constructor(reason: RegistrationRefusal["reason"], message: string) {
    super(message);
    this.reason = reason;
  }
}

/** What is counted. */
export type RegistrationEvent = "registered" | "updated" | "disconnected" | "removed" | "refused";

export interface RegisteredOptions {
  /** The WorkloadGroup in force, as members see it. */
  group(namespace: string, name: string): GroupTemplate | undefined;
  readonly store: RegistrationStore;
  /** Where others learn of them, if anywhere. */
  readonly board: RegistrationBoard | undefined;
  /** Whether another source holds the entry, and so goes before this one. */
  isElsewhere(key: string): boolean;
  /** Whose entry it is, where another control plane registered it. */
  accountOf(key: string): string | undefined;
  /** How long a workload may be away before it is taken out. */
  readonly graceMs: number;
  /** Name of this control plane, for those who look at the object. */
  readonly controller: string;
  readonly clock: Clock;
  readonly log: Log;
  note(event: RegistrationEvent): void;
}

interface Entry {
  registration: Registration;
  readonly connections: Set<object>;
  cancel: () => void;
}

/** After a restart those who were connected have at least this long to come back: agents wait between attempts. */
const RETURN_MS = 30_000;
const MOST_REGISTRATIONS = 50_000;
const LONGEST_MESSAGE = 1_024;

/**
 * Workloads that registered themselves when they connected (node metadata AUTO_REGISTER_GROUP), as a source of WorkloadEntries. An entry lives as long
 * as its workload has a connection, and a grace period more; it follows its group, and goes with it.
 */
export class RegisteredWorkloads implements ConfigSource {
  readonly name = "autoregistered";
  readonly #options: RegisteredOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #ofConnection = new WeakMap<object, string>();
  readonly #changed = new Set<string>();
  #wake: () => void = () => {};
  #stopped = false;

  constructor(options: RegisteredOptions) {
    this.#options = options;
  }

  /** Brings back those of before a restart. Call before `events`. */
  async restore(): Promise<void> {
    const { store, clock, graceMs } = this.#options;
    for (const known of await store.load()) {
      const { connectedAt, ...rest } = known;
      const now = clock.now();
      const left = known.disconnectedAt === undefined ? Math.max(graceMs, RETURN_MS) : graceMs - (now - known.disconnectedAt);
      const entry = {
        registration: { ...rest, disconnectedAt: known.disconnectedAt ?? now },
        connections: new Set<object>(),
        cancel: () => {},
      };
      this.#entries.set(keyOf(known.claim.namespace, known.name), entry);
      this.#removeAfter(entry, Math.min(Math.max(left, 0), Math.max(graceMs, RETURN_MS)));
    }
  }

  async *events(signal: AbortSignal): AsyncIterable<SourceEvent> {
    this.#changed.clear();
    yield { type: "reset", objects: [...this.#entries.keys()].flatMap((key) => this.#documents(key)) };
    signal.addEventListener("abort", () => this.#wake(), { once: true });
    while (!signal.aborted) {
      if (this.#changed.size === 0) await new Promise<void>((resolve) => (this.#wake = resolve));
      const keys = [...this.#changed];
      this.#changed.clear();
      if (keys.length > 0 && !signal.aborted)
        yield { type: "replace", scopes: keys.map((key) => ({ scope: key, objects: this.#documents(key) })) };
    }
  }

  /** A workload is on a connection. The same may be said again and again. Throws `RegistrationRefusal`. */
  connect(connection: object, claim: Claim): void {
    if (this.#stopped || this.#ofConnection.has(connection)) return;
    const name = registrationName(claim);
    const key = keyOf(claim.namespace, name);
    const known = this.#entries.get(key);
    const template = this.#admit(claim, key);
    const { clock, log, note } = this.#options;
    const { disconnectedAt: _, ...before } = known?.registration ?? { registeredAt: clock.now() };
    const registration: Registration = { ...before, name, claim, template, connectedAt: clock.now() };
    const entry = known ?? { registration, connections: new Set<object>(), cancel: () => {} };
    entry.cancel();
    entry.registration = registration;
    entry.connections.add(connection);
    this.#entries.set(key, entry);
    this.#ofConnection.set(connection, key);
    if (known === undefined) log.info({ entry: key, group: claim.group, address: claim.address }, "a workload registered itself");
    note(known === undefined ? "registered" : "updated");
    this.#touch(key);
  }

  /** A connection ended. */
  leave(connection: object): void {
    const key = this.#ofConnection.get(connection);
    const entry = key === undefined ? undefined : this.#entries.get(key);
    if (this.#stopped || key === undefined || entry === undefined || !entry.connections.delete(connection)) return;
    if (entry.connections.size > 0) return;
    const { connectedAt: _, ...rest } = entry.registration;
    entry.registration = { ...rest, disconnectedAt: this.#options.clock.now() };
    this.#options.note("disconnected");
    this.#removeAfter(entry, this.#options.graceMs);
    this.#touch(key);
  }

  /** The agent on a connection tells of its workload's health; counts for that workload alone. False where it registered none. */
  report(connection: object, { healthy, message }: { readonly healthy: boolean; readonly message: string }): boolean {
    const key = this.#ofConnection.get(connection);
    const entry = key === undefined ? undefined : this.#entries.get(key);
    if (key === undefined || entry === undefined) return false;
    const { health } = entry.registration;
    const said = message.slice(0, LONGEST_MESSAGE);
    if (health?.healthy === healthy && health.message === said) return true;
    entry.registration = { ...entry.registration, health: { healthy, message: said, at: this.#options.clock.now() } };
    this.#options.log.info({ entry: key, healthy, ...(said !== "" && { message: said }) }, "a workload's health changed");
    this.#touch(key);
    return true;
  }

  /** Groups changed: their members follow. A group that is gone takes its entries with it; it gets those back that are connected when it returns. */
  groupsChanged(): void {
    for (const [key, entry] of this.#entries) {
      const { claim, template } = entry.registration;
      const now = this.#options.group(claim.namespace, claim.group);
      if (JSON.stringify(now) === JSON.stringify(template)) continue;
      const allowed = now !== undefined && accountFault(claim, now) === undefined;
      if (!allowed && entry.connections.size === 0) this.#remove(key, entry);
      else {
        const { template: _, ...rest } = entry.registration;
        entry.registration = allowed ? { ...rest, template: now } : rest;
        this.#touch(key);
      }
    }
  }

  /** What is in force changed: where another source holds an entry by now, or no longer does, ours stands aside or in for it. */
  entriesChanged(keys: Iterable<string>): void {
    for (const key of keys) {
      if (!this.#entries.has(key)) continue;
      this.#changed.add(key);
      this.#wake();
    }
  }

  /** Connections that end from now on end because we do. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { cancel } of this.#entries.values()) cancel();
    await this.#options.store.flush();
  }

  #admit(claim: Claim, key: string): GroupTemplate {
    const known = this.#entries.get(key)?.registration;
    const refuse = (reason: RegistrationRefusal["reason"], message: string): RegistrationRefusal => {
      this.#options.note("refused");
      return new RegistrationRefusal(reason, message);
    };
    const group = this.#options.group(claim.namespace, claim.group);
    if (group === undefined)
      throw refuse("no group", `there is no WorkloadGroup ${quoted(claim.group)} in namespace ${quoted(claim.namespace)}`);
    const fault = accountFault(claim, group);
    if (fault !== undefined) throw refuse("identity", fault);
    const account = known?.claim.serviceAccount ?? this.#options.accountOf(key);
    if (account !== undefined && account !== claim.serviceAccount)
      throw refuse("identity", `${quoted(registrationName(claim))} was registered by another service account`);
    if (isIP(claim.address) === 0) throw refuse("address", `${quoted(claim.address)} is no address to register`);
    if (known === undefined && this.#entries.size >= MOST_REGISTRATIONS)
      throw refuse("too many", `${MOST_REGISTRATIONS} workloads are registered; no more are taken`);
    return group;
  }

  #removeAfter(entry: Entry, ms: number): void {
    const { claim, name } = entry.registration;
    entry.cancel = this.#options.clock.after(ms, () => this.#remove(keyOf(claim.namespace, name), entry));
  }

  #remove(key: string, entry: Entry): void {
    if (entry.connections.size > 0) return;
    entry.cancel();
    this.#entries.delete(key);
    this.#options.log.info({ entry: key }, "a workload that registered itself is gone");
    this.#options.note("removed");
    this.#touch(key);
  }

  #touch(key: string): void {
    this.#changed.add(key);
    this.#wake();
    this.#options.store.save(() => [...this.#entries.values()].map(({ registration }) => registration));
    const [, namespace = "", name = ""] = key.split("/");
    this.#options.board?.post({ namespace, name }, this.#document(key));
  }

  #document(key: string): EntryDocument | undefined {
    const registration = this.#entries.get(key)?.registration;
    return registration && documentOf(registration, this.#options.controller);
  }

  #documents(key: string): readonly RawObject[] {
    const content = this.#options.isElsewhere(key) ? undefined : this.#document(key);
    if (content === undefined) return [];
    return [{ origin: { source: this.name }, slot: key, scope: key, content, digest: contentHash(JSON.stringify(content)) }];
  }
}

const keyOf = (namespace: string, name: string): string => `WorkloadEntry/${namespace}/${name}`;
const quoted = (text: string): string => JSON.stringify(text.slice(0, 100));

function accountFault({ serviceAccount, group }: Claim, template: GroupTemplate): string | undefined {
  return template.serviceAccount === "" || template.serviceAccount === serviceAccount
    ? undefined
    : `members of group ${quoted(group)} have service account ${quoted(template.serviceAccount)}, but the caller is ${quoted(serviceAccount)}`;
}
