import { GRPC_STATUS } from "../wire/grpc-status.ts";
import type { XdsStream } from "./stream.ts";
import type { StreamDeps } from "./stream-deps.ts";

/** A client that has taken nothing for this long while there was something to take is slow. */
const SLOW_MS = 1_000;

type Deps = Pick<StreamDeps, "clock" | "settings" | "budget" | "metrics" | "log">;

/** Cuts those who do not read while others wait for room, and those who never say who they are. Called regularly. */
export function cutIdle(streams: readonly XdsStream[], { clock, settings, budget, metrics, log }: Deps): void {
  const now = clock.monotonic();
  for (const stream of streams) {
    if (stream.isQuiet) continue;
    const { stalledMs, unsentMs, namelessMs } = stream.waits(now);
    const stalled = unsentMs > settings.sendTimeoutMs || (budget.contended && stalledMs > settings.stallMs);
    if (namelessMs > settings.firstRequestMs) stream.close(GRPC_STATUS.DEADLINE_EXCEEDED, "no request came");
    if (!stalled) continue;
    metrics.writeTimeout();
    log.warn({ node: stream.nodeId, ms: Math.round(unsentMs) }, "proxy does not read what it is sent; its connection is cut");
    stream.abort();
  }
}

/** Memory is about to run out: a tenth of the streams that do not read is cut, one at least, those first for which most is kept. */
export function shedSlowest(streams: readonly XdsStream[], { clock, metrics, log }: Deps): void {
  const now = clock.monotonic();
  const slow = streams.filter((stream) => stream.unsentBytes > 0 && stream.waits(now).stalledMs >= SLOW_MS);
  slow.sort((a, b) => b.unsentBytes - a.unsentBytes);
  for (const stream of slow.slice(0, Math.ceil(slow.length / 10))) {
    metrics.shed();
    log.warn({ node: stream.nodeId, bytes: stream.unsentBytes }, "memory is short: the connection of a proxy that does not read is cut");
    stream.abort();
  }
}
