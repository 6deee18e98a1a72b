import assert from "node:assert/strict";
import { it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { createAllowance } from "../base/allowance.ts";
import { silentLog } from "../base/log.ts";
import type { ProxyView } from "../model/proxy.ts";
import { CLUSTER_TYPE } from "../wire/type-urls.ts";
import type { Channel, Received } from "./channel.ts";
import { noMetrics } from "./metrics.ts";
import { type Answering, noteAnswer } from "./note-answer.ts";

it("writes what proxies reject, cut to what can be read, and not as often as one likes that rejects whatever comes; each is counted", () => {
  const clock = manualClock();
  const lines: { readonly node: string; readonly reason: string }[] = [];
  let counted = 0;
  const deps = {
    clock,
    metrics: { ...noMetrics, rejected: () => (counted += 1) },
    log: { ...silentLog, warn: (fields: unknown) => void lines.push(fields as (typeof lines)[number]) },
    rounds: { rejected: () => {} },
    rejectionLines: createAllowance({ clock, each: { burst: 10, perSecond: 1 }, all: { burst: 100, perSecond: 1 } }),
  } as unknown as Answering["deps"];
  const channel = { record: { nacks: 0 }, provider: { typeUrl: CLUSTER_TYPE }, origin: () => "" } as unknown as Channel;
  const received = { verdict: "nack", answered: { nonce: "1", sentAt: 0 }, offenders: [] } as unknown as Received;
  const rejects = (namespace: string): void =>
    noteAnswer(channel, received, {
      deps,
      stream: { nodeId: `proxy of ${namespace}` },
      view: { namespace } as ProxyView,
      error: "x".repeat(16_000),
    });
  for (let turn = 0; turn < 1_000; turn++) rejects("shop");
  assert.equal(lines.length, 10);
  assert.equal(lines[0]?.reason.length, 4_000);
  rejects("bank");
  assert.equal(lines.at(-1)?.node, "proxy of bank");
  clock.advance(2_000);
  for (let turn = 0; turn < 10; turn++) rejects("shop");
  assert.equal(lines.length, 13);
  assert.equal(counted, 1_011);
});
