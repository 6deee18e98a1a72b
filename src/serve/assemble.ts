import type { PushCause } from "../xds/metrics.ts";
import type { ClusterLink } from "./cluster-link.ts";
import type { ControlPlaneOptions, Parts } from "./control-plane.ts";
import { followSources } from "./follow-sources.ts";
import { ISTIO_API_VERSION } from "./generate-settings.ts";
import { guardMemory } from "./guard-memory.ts";
import type { HealthCheck } from "./health.ts";
import type { MeshState } from "./mesh-state.ts";
import { createMetrics } from "./metrics.ts";
import { statusSource } from "./object-reports.ts";
import { openStore } from "./open-store.ts";
import { openStreams } from "./open-streams.ts";
import { createPatchLog } from "./patch-log.ts";
import { checksOf } from "./plane-checks.ts";
import { prepareAhead } from "./prepare-ahead.ts";
import { createProfiler } from "./profiler.ts";
import { observe, sweepRegularly } from "./upkeep.ts";

export interface Assembled {
  readonly parts: Parts;
  /** Resolves at the first commit after every source has loaded. */
  readonly loaded: Promise<void>;
  /** Resolves when what was being written is on disk. */
  readonly stopLoop: () => Promise<void>;
}

/** What is to be pushed, and what kind of change it is. */
type Change = [reason: string, cause?: PushCause];

/** Makes all rooms of the house and wires them: configuration, streams, and what follows both. */
export async function assemble(options: ControlPlaneOptions, mesh: MeshState, link: ClusterLink | undefined): Promise<Assembled> {
  const metrics = createMetrics(ISTIO_API_VERSION);
  // Things may change before there is anybody to tell.
  const later = { push: (..._: Change): void => {}, settled: (): void => {} };
  const shared = { options, mesh, link, metrics, patchLog: createPatchLog(options.log), push: (...one: Change) => later.push(...one) };
  const opened = await openStore(shared);
  const { world, store, documents, credentials } = opened;
  const streams = await openStreams({ ...shared, world, store, settled: () => later.settled() });
  const { xds, names, identity, registrations, leases, receipts, callers, lastPush } = streams;
  later.push = (...change) => void xds.push(...change);
  const { sources, outside, problemReport, reports, debounce, loaded } = followSources({
    ...shared,
    ...opened,
    xds,
    registrations,
    receipts,
  });
  later.settled = () => reports.note();
  const serving = { yes: false };
  const laterChecks: Parts["laterChecks"] = [];
  const memory = guardMemory({ options, mesh, world, xds, leases, metrics });
  const checks = (): readonly HealthCheck[] => [
    ...checksOf({ sources, mesh, store, serving, clock: options.clock }),
    ...identity.checks(),
    ...credentials.checks(),
    memory.check(),
    ...(link?.checks() ?? []),
    ...laterChecks.flatMap((one) => one()),
  ];
  const parts: Parts = {
    ...{ options, mesh, world, store, sources, xds, metrics, leases, identity, registrations, callers, outside, problemReport, reports },
    ...{
      lastPush,
      profiler: createProfiler(options.clock),
      serving,
      checks,
      laterChecks,
      injection: { shown: () => undefined },
      commitSoon: () => debounce.note(),
    },
  };
  if (link !== undefined) void loaded.then(() => link.keepStatus(statusSource(reports, link.source.name, metrics.status)));
  observe(parts);
  const stops = [
    debounce.stop,
    sweepRegularly(parts),
    prepareAhead({ ...options, world, xds, mesh, names, loaded, proxiesAwaited: receipts.awaited }),
    receipts.follow(xds),
    documents.follow(store, loaded),
    memory.stop,
    credentials.stop,
  ];
  return {
    parts,
    loaded,
    async stopLoop() {
      await Promise.all(stops.map((stop) => stop()));
    },
  };
}
