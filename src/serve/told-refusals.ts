import type { Clock } from "../base/clock.ts";
import { limitedLog } from "../base/limited-log.ts";
import type { Log } from "../base/log.ts";
import { StreamRefusal } from "../xds/refusal.ts";
import type { XdsServerOptions } from "../xds/server.ts";

/** Lines about callers that were turned away, which anybody can cause. */
export const REFUSALS_PER_SECOND = 20;
const LONGEST_ID = 200;

/** Tells in the log of proxies that may not be what their nodes say, or whose group is not there: who runs the control plane is asked why a machine does not join. */
export function toldRefusals(
  viewOf: XdsServerOptions["viewOf"],
  { log, clock }: { readonly log: Log; readonly clock: Clock },
): typeof viewOf {
  const refusals = limitedLog(log, clock, REFUSALS_PER_SECOND);
  return (node, peer, variant) => {
    try {
      return viewOf(node, peer, variant);
    } catch (error) {
      if (error instanceof StreamRefusal)
        refusals.info({ peer: peer.address, node: node.id.slice(0, LONGEST_ID), reason: error.message }, "a proxy was turned away");
      throw error;
    }
  };
}
