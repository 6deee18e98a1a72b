import type { ObjectReport, Reach } from "../../config/status/object-report.ts";
import { RECONCILED } from "../../config/status/wanted-status.ts";

/**
 * Objects whose present generation all proxies have had. Proxies that come later are given it with everything else, so how many they are by now is no news:
 * without this, each proxy that comes or goes would be news of every object.
 */
export class ReachedObjects {
  readonly #reached = new Map<string, { readonly generation: number; readonly reach: Reach | undefined }>();

  /** Takes over what statuses say that were written before. */
  find(statuses: ReadonlyMap<string, unknown>): void {
    for (const [key, status] of statuses) {
      const generation = reconciledGeneration(status);
      if (generation !== undefined) this.#reached.set(key, { generation, reach: undefined });
    }
  }

  /** What is to be said: how it was when all had it, as long as nobody refuses it. */
  of({ key, head: { generation } }: Pick<ObjectReport, "key" | "head">, now: Reach | undefined): Reach | undefined {
    if (now === undefined) return undefined;
    const known = this.#reached.get(key);
    if (now.refusals.length > 0) {
      this.#reached.delete(key);
      return now;
    }
    if (known?.generation === generation && known.reach !== undefined) return known.reach;
    if (known?.generation !== generation && (now.proxies === 0 || now.acknowledged < now.proxies)) return now;
    const reach = { proxies: now.proxies, acknowledged: now.proxies, refusals: [] };
    this.#reached.set(key, { generation, reach });
    return reach;
  }

  delete(key: string): void {
    this.#reached.delete(key);
  }
}

/** The generation that all proxies have according to a status. */
function reconciledGeneration(status: unknown): number | undefined {
  const conditions = typeof status === "object" && status !== null && "conditions" in status ? status.conditions : undefined;
  if (!Array.isArray(conditions)) return undefined;
  const one = (conditions as readonly Partial<Record<string, unknown>>[]).find((each) => each?.type === RECONCILED);
  return one?.status === "True" ? Number(one.observedGeneration) : undefined;
}
