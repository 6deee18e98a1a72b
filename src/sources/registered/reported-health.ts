import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { KeptList } from "./kept-list.ts";

/** What an agent reported last of the workload that a WorkloadEntry stands for. Plain JSON: it is kept on disk in this form. */
export interface HealthReport {
  /** Key of the WorkloadEntry. */
  readonly key: string;
  readonly healthy: boolean;
}

export interface ReportedHealthOptions {
  readonly store: KeptList<HealthReport>;
  /** How long a report counts after its agent is gone. */
  readonly graceMs: number;
  readonly clock: Clock;
  readonly log: Log;
  /** Told of each change; undefined: nothing is known any more. */
  changed(key: string, healthy: boolean | undefined): void;
}

interface Entry {
  healthy: boolean | undefined;
  readonly connections: Set<object>;
  cancel: () => void;
}

/** After a restart agents have at least this long to come back: they wait between attempts. */
const RETURN_MS = 30_000;

/**
 * The health of workloads whose WorkloadEntries were written by somebody (node metadata WORKLOAD_ENTRY): what their agents report on their streams. A report
 * counts as long as its agent is connected, and a grace period more.
 */
export class ReportedHealth {
  readonly #options: ReportedHealthOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #ofConnection = new WeakMap<object, string>();
  #stopped = false;

  constructor(options: ReportedHealthOptions) {
    this.#options = options;
  }

  /** Brings back the reports of before a restart. */
  async restore(): Promise<void> {
    const { store, graceMs, changed } = this.#options;
    for (const { key, healthy } of await store.load()) {
      const entry: Entry = { healthy, connections: new Set(), cancel: () => {} };
      this.#entries.set(key, entry);
      this.#forgetAfter(key, entry, Math.max(graceMs, RETURN_MS));
      changed(key, healthy);
    }
  }

  /** Whether a connection speaks for a WorkloadEntry already. */
  has(connection: object): boolean {
    return this.#ofConnection.has(connection);
  }

  /** The agent on a connection speaks for a WorkloadEntry. Who may, the caller decides. */
  connect(connection: object, key: string): void {
    const entry = this.#entries.get(key) ?? { healthy: undefined, connections: new Set<object>(), cancel: () => {} };
    entry.cancel();
    entry.connections.add(connection);
    this.#entries.set(key, entry);
    this.#ofConnection.set(connection, key);
  }

  /** A connection ended. */
  leave(connection: object): void {
    const key = this.#ofConnection.get(connection);
    const entry = key === undefined ? undefined : this.#entries.get(key);
    if (this.#stopped || key === undefined || entry === undefined) return;
    entry.connections.delete(connection);
    if (entry.connections.size === 0) this.#forgetAfter(key, entry, this.#options.graceMs);
  }

  /** The agent on a connection tells of its workload's health. False where it speaks for none. */
  report(connection: object, { healthy, message }: { readonly healthy: boolean; readonly message: string }): boolean {
    const key = this.#ofConnection.get(connection);
    const entry = key === undefined ? undefined : this.#entries.get(key);
    if (key === undefined || entry === undefined) return false;
    if (entry.healthy === healthy) return true;
    entry.healthy = healthy;
    this.#options.log.info(
      { entry: key, healthy, ...(message !== "" && { message: message.slice(0, 256) }) },
      "a workload's health changed",
    );
    this.#tell(key, healthy);
    return true;
  }

  /** Connections that end from now on end because we do. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { cancel } of this.#entries.values()) cancel();
    await this.#options.store.flush();
  }

  #forgetAfter(key: string, entry: Entry, ms: number): void {
    entry.cancel = this.#options.clock.after(ms, () => {
      this.#entries.delete(key);
      if (entry.healthy !== undefined) this.#tell(key, undefined);
    });
  }

  #tell(key: string, healthy: boolean | undefined): void {
    this.#options.changed(key, healthy);
    this.#options.store.save(() =>
      [...this.#entries].flatMap(([one, entry]) => (entry.healthy === undefined ? [] : [{ key: one, healthy: entry.healthy }])),
    );
  }
}

/** Whether something read from disk is a report. */
export function isHealthReport(value: unknown): value is HealthReport {
  if (typeof value !== "object" || value === null) return false;
  const { key, healthy } = value as Partial<Record<keyof HealthReport, unknown>>;
  return typeof key === "string" && typeof healthy === "boolean";
}
