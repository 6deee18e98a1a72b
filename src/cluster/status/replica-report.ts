import { contentHash } from "../../base/hash.ts";
import type { ObjectReport, Reach, ReportsNow } from "../../config/status/object-report.ts";

/** What a replica tells the others of its proxies. Small however many objects there are: only those that not all of its proxies have are named. */
export interface ReplicaReport {
  readonly proxies: number;
  /** By revision that objects are labelled for (empty: for all): stands for which of them it holds, in which generation. */
  readonly digests: Readonly<Record<string, string>>;
  readonly open: Readonly<Record<string, OpenObject>>;
}

/** An object that not all of its proxies have. */
export interface OpenObject extends Omit<Reach, "proxies"> {
  readonly generation: number;
}

const MOST_OPEN = 100;
const MOST_REFUSALS = 3;
const LONGEST_ERROR = 200;

/** What a replica has to tell. Where more is open than can be said, it does not claim to hold anything. */
export function replicaReport(
  { proxies }: Pick<ReportsNow, "proxies">,
  objects: readonly ObjectReport[],
  digests: ReplicaReport["digests"],
): ReplicaReport {
  const open = objects.filter(({ state, reach }) => state === "current" && isOpen(reach));
  return {
    proxies,
    digests: open.length > MOST_OPEN ? {} : digests,
    open: Object.fromEntries(open.slice(0, MOST_OPEN).map(({ key, head, reach }) => [key, openObject(head.generation, reach)])),
  };
}

const isOpen = (reach: Reach | undefined): boolean =>
  reach !== undefined && (reach.acknowledged < reach.proxies || reach.refusals.length > 0);

const openObject = (generation: number, reach: Reach | undefined): OpenObject => ({
  generation,
  acknowledged: reach?.acknowledged ?? 0,
  refusals: (reach?.refusals ?? []).slice(0, MOST_REFUSALS).map((one) => ({ ...one, error: one.error.slice(0, LONGEST_ERROR) })),
});

/** The same for replicas that hold the same generations. */
function digestsOf(objects: readonly ObjectReport[]): Readonly<Record<string, string>> {
  const groups = Map.groupBy(objects, ({ head }) => head.revision);
  return Object.fromEntries([...groups].map(([revision, group]) => [revision, contentHash(group.map(heldAs).sort().join("\n"))]));
}

const heldAs = ({ key, head }: ObjectReport): string => `${key}@${head.generation}@${head.createdAt}`;

/** Reads what another replica wrote; undefined where it cannot be read, as from another version of the program. */
export function readReplicaReport(text: string): ReplicaReport | undefined {
  try {
    const { proxies, digests, open } = JSON.parse(text) as Partial<ReplicaReport>;
    const isWhole =
      typeof proxies === "number" && typeof digests === "object" && digests !== null && typeof open === "object" && open !== null;
    return isWhole ? { proxies, digests, open } : undefined;
  } catch {
    return undefined;
  }
}

interface Held {
  readonly as: string;
  readonly moment: number;
}

/**
 * Sums up what replicas tell, seen from one of them. Another replica has a generation where it holds all that this one held at some moment since that
 * generation came, or says so of the object; of one that is further behind, or ahead, none of its proxies are counted as having it.
 */
export class SharedReaches {
  #moment = 0;
  /** When this replica first held an object in its present generation. */
  #since = new Map<string, Held>();
  #digests: ReplicaReport["digests"] = {};
  /** By revision and digest, the last moment at which this replica held just that. */
  readonly #moments = new Map<string, number>();
  readonly #upTo = new Map<string, number>();
  #others: ReadonlyMap<string, ReplicaReport> = new Map();

  /** Takes in what this replica holds now; gives what stands for it. */
  hold(objects: readonly ObjectReport[]): ReplicaReport["digests"] {
    this.#moment += 1;
    const since = new Map<string, Held>();
    let isNew = objects.length !== this.#since.size;
    for (const object of objects) {
      const { key } = object;
      const known = this.#since.get(key);
      const as = heldAs(object);
      const held = known?.as === as ? known : { as, moment: this.#moment };
      isNew ||= held !== known;
      since.set(key, held);
    }
    this.#since = since;
    if (isNew) this.#digests = digestsOf(objects);
    for (const [revision, digest] of Object.entries(this.#digests)) this.#remember(`${revision} ${digest}`);
    return this.#digests;
  }

  /** Takes in what the others say, by name. */
  hear(others: ReadonlyMap<string, ReplicaReport>): void {
    this.#others = others;
    for (const [name, { digests }] of others) {
      for (const [revision, digest] of Object.entries(digests)) {
        const moment = this.#moments.get(`${revision} ${digest}`);
        const place = `${name} ${revision}`;
        if (moment !== undefined) this.#upTo.set(place, Math.max(moment, this.#upTo.get(place) ?? 0));
      }
    }
    for (const place of this.#upTo.keys()) if (!others.has(place.slice(0, place.indexOf(" ")))) this.#upTo.delete(place);
  }

  /** The reach of an object over all replicas. */
  of({ key, head: { generation, revision }, reach }: ObjectReport): Reach | undefined {
    if (reach === undefined || this.#others.size === 0) return reach;
    let { proxies, acknowledged } = reach;
    const refusals = [...reach.refusals];
    for (const [name, other] of this.#others) {
      const said = Object.hasOwn(other.open, key) ? other.open[key] : undefined;
      const holds = (this.#upTo.get(`${name} ${revision}`) ?? 0) >= (this.#since.get(key)?.moment ?? Number.POSITIVE_INFINITY);
      proxies += other.proxies;
      if (said?.generation === generation) {
        acknowledged += said.acknowledged;
        refusals.push(...said.refusals);
      } else if (holds && said === undefined) acknowledged += other.proxies;
    }
    return { proxies, acknowledged, refusals: refusals.sort((a, b) => (a.proxy < b.proxy ? -1 : a.proxy > b.proxy ? 1 : 0)) };
  }

  /** The last of equal states counts: what was the same then is the same now. Older ones are forgotten in order. */
  #remember(state: string): void {
    this.#moments.delete(state);
    this.#moments.set(state, this.#moment);
    const [oldest] = this.#moments.keys();
    if (this.#moments.size > MOST_MOMENTS && oldest !== undefined) this.#moments.delete(oldest);
  }
}

const MOST_MOMENTS = 500;
