import type { Labels } from "../base/labels.ts";
import { inCluster } from "../config/object.ts";
import { type Member, memberMaker, NOTHING_KNOWN } from "./member.ts";

/** What a proxy says of a pod that no object tells of. */
export interface PodClaim {
  readonly labels: Labels;
  /** Numbers of the containers' ports, by name. */
  readonly ports: Readonly<Record<string, number>>;
}

/**
 * A pod as its own proxy describes it. Who serves others is never taken from this: it says only which ports the proxy itself opens, until the object
 * arrives that a proxy may well be ahead of.
 */
export function claimedPod(
  { labels, ports }: PodClaim,
  at: { readonly namespace: string; readonly address: string; readonly cluster: string; readonly clusterId: string },
): Member {
  return memberMaker(at.clusterId)({
    origin: "pod",
    address: at.address,
    ports,
    labels,
    namespace: at.namespace,
    workload: "",
    ...NOTHING_KNOWN,
    objectKey: `Pod/${at.namespace}/${at.address}${inCluster(at.cluster)}`,
  });
}
