import type { Problem } from "../problem.ts";
import type { StandingDocument } from "../store/store-types.ts";

/** How far the present generation of an object has come among proxies. */
export interface Reach {
  /** That are connected. */
  readonly proxies: number;
  /** Of those, the ones that have acknowledged all they were due by it, and refused nothing of it. */
  readonly acknowledged: number;
  /** Sorted by proxy. */
  readonly refusals: readonly Refusal[];
}

/** A resource that is made from an object, among others, and that a proxy refused. */
export interface Refusal {
  /** `name.namespace` */
  readonly proxy: string;
  /** Type and name, e.g. `LDS 0.0.0.0_80`. */
  readonly resource: string;
  readonly error: string;
}

/** All there is to say of one configuration object in its status. */
export interface ObjectReport extends Omit<StandingDocument, "problems"> {
  /** Its own, and those it has beside other objects. */
  readonly problems: readonly Problem[];
  /** Undefined where that is not followed. */
  readonly reach: Reach | undefined;
}

/** How the objects of a source stand at one moment. */
export interface ReportsNow {
  /** That are connected here. */
  readonly proxies: number;
  /** In no order. To be read once, in one go or in several: counts are those of the moment. */
  readonly objects: Iterable<ObjectReport>;
}

/** What statuses are written from, and who is told how that goes. */
export interface StatusSource {
  look(): ReportsNow;
  /** Calls back whenever a look may give something else. Called often. */
  follow(noted: () => void): void;
  readonly metrics: StatusMetrics;
}

export interface StatusMetrics {
  /** An object was looked at in the cluster: `unchanged` where its status was right, `outdated` where it is another by now. */
  wrote(outcome: "written" | "unchanged" | "outdated" | "gone"): void;
  /** By the reason the API server gives. */
  failed(reason: string): void;
  /** Objects that wait to be looked at. */
  waiting(count: number): void;
}
