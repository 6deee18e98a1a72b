import { expect } from "vitest";
import type { SyncStatus } from "../../src/debug/api-types.ts";
import type { Istiod } from "./istiod.ts";
import { eventually } from "./wait.ts";

/** What istiod says of its connected proxies. */
export async function syncz(istiod: Istiod): Promise<readonly SyncStatus[]> {
  return (await (await istiod.debug("/debug/syncz")).json()) as readonly SyncStatus[];
}

const ALL_TYPES = ["CDS", "EDS", "LDS", "RDS"];

/** Resolves when a proxy is connected, has asked for every type, and has all it asked for. */
export function inStep(istiod: Istiod, proxy: string): Promise<SyncStatus> {
  return eventually(`${proxy} is in step`, async () => {
    const status = (await syncz(istiod)).find((one) => one.proxy === proxy);
    if (status === undefined) return undefined;
    const synced = status.types.filter(({ state }) => state === "SYNCED").map(({ type }) => type);
    return ALL_TYPES.every((type) => synced.includes(type)) ? status : undefined;
  });
}

/** An Envoy whose counters can be read. */
interface Counted {
  stat(name: string): Promise<number>;
}

/** How often an Envoy took clusters and listeners. */
export interface Updates {
  readonly clusters: number;
  readonly listeners: number;
}

export async function updatesOf({ stat }: Counted): Promise<Updates> {
  const [clusters = 0, listeners = 0] = await Promise.all(
    ["cluster_manager.cds.update_success", "listener_manager.lds.update_success"].map(stat),
  );
  return { clusters, listeners };
}

/** Fails where an Envoy was sent something since `before`. A greeting, which comes where a test takes half a minute, is to it an update of clusters. */
export async function assertSentNothing(proxy: Counted, istiod: Pick<Istiod, "metric">, before: Updates): Promise<void> {
  const now = await updatesOf(proxy);
  const greetings = await istiod.metric("istiod_xds_greetings_total");
  expect(now.listeners).toBe(before.listeners);
  expect(now.clusters - before.clusters).toBeLessThanOrEqual(greetings);
}
