import type { ProxyView } from "../model/proxy.ts";
import { shortTypeName } from "../wire/type-urls.ts";
import type { Channel, Received } from "./channel.ts";
import type { StreamDeps } from "./stream-deps.ts";

/** Whose answer it is. */
export interface Answering {
  readonly deps: Pick<StreamDeps, "clock" | "metrics" | "log" | "rounds" | "rejectionLines">;
  readonly stream: { readonly nodeId: string };
  readonly view: ProxyView | undefined;
  /** Why a response was rejected. */
  readonly error: string;
}

/** Of an error's text in the log; the pages show more of it. */
const LONGEST_REASON = 4_000;

/** Records what came of a request that was an answer; a rejection is for people to read. */
export function noteAnswer(channel: Channel, { verdict, answered, offenders }: Received, { deps, stream, view, error }: Answering): void {
  const { clock, metrics, log } = deps;
  const { record } = channel;
  const { typeUrl } = channel.provider;
  if (verdict === "stale") metrics.expiredNonce(typeUrl);
  if (answered === undefined) return;
  if (verdict === "ack") {
    record.ackedNonce = answered.nonce;
    record.ackedAt = clock.now();
    metrics.acknowledged(typeUrl, clock.monotonic() - answered.sentAt);
    return;
  }
  record.nacks += 1;
  record.lastError = error;
  record.lastNackAt = clock.now();
  metrics.rejected(typeUrl, stream.nodeId);
  deps.rounds.rejected(stream);
  if (!deps.rejectionLines.take(view?.namespace ?? "")) return;
  const resources = offenders.map((name) => channel.origin(view, name));
  log.warn(
    { node: stream.nodeId, type: shortTypeName(typeUrl), resources, reason: error.slice(0, LONGEST_REASON) },
    "proxy rejected configuration",
  );
}
