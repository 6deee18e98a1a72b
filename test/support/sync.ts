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
