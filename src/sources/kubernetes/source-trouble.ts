import type { KindWatches } from "./kind-watches.ts";
import type { ProbeState } from "./server-probe.ts";

/** What is wrong, in words that do not change while it lasts, and since when. */
export interface SourceTrouble {
  readonly message: string;
  readonly since: number;
}

export interface TroubleInput {
  readonly probe: ProbeState;
  readonly watches: Pick<KindWatches, "reports" | "discoveryFault">;
  /** What is served is of before a restart: since when it may be out of date. */
  readonly restoredAt: number | undefined;
  readonly now: number;
}

/** What keeps a cluster from being read, where anything does. Kinds that we may not read and do without are no trouble. */
export function troubleOf({ probe, watches, restoredAt, now }: TroubleInput): SourceTrouble | undefined {
  if (probe.fault !== undefined) return { message: probe.fault, since: restoredAt ?? probe.since };
  const failing = watches
    .reports()
    .filter(({ kind, state }) => state.state === "failing" && !(kind.dispensable && state.fault?.isForbidden === true))
    .toSorted((a, b) => (a.state.failingSince ?? 0) - (b.state.failingSince ?? 0));
  const [first] = failing;
  if (first !== undefined) {
    const said = first.state.fault?.message ?? "it fails";
    const message = first.state.fault?.isTransport === true ? said : `${first.kind.def.plural}: ${said}`;
    return { message, since: restoredAt ?? first.state.failingSince ?? now };
  }
  if (watches.discoveryFault !== undefined) return { message: watches.discoveryFault, since: now };
  return restoredAt === undefined ? undefined : { message: "the cluster has not been read since the start", since: restoredAt };
}
