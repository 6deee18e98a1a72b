import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationOfMs } from "../../base/duration.ts";
import type { OutlierDetectionSchema } from "../../gen/envoy/config/cluster/v3/outlier_detection_pb.js";
import type { OutlierInput } from "./cluster-input.ts";

/** A reason to eject is enforced where a count is given, off where the count is 0. Success rate is never one, as in Istio. */
export function outlierDetection(input: OutlierInput): MessageInitShape<typeof OutlierDetectionSchema> {
  const { consecutive5xx, consecutiveGatewayFailures, consecutiveLocalOriginFailures, splitLocalOrigin } = input;
  return {
    enforcingSuccessRate: 0,
    consecutive5xx,
    enforcingConsecutive5xx: enforcing(consecutive5xx),
    consecutiveGatewayFailure: consecutiveGatewayFailures,
    enforcingConsecutiveGatewayFailure: enforcing(consecutiveGatewayFailures),
    ...(splitLocalOrigin && {
      splitExternalLocalOriginErrors: true,
      enforcingLocalOriginSuccessRate: 0,
      ...((consecutiveLocalOriginFailures ?? 0) > 0 && {
        consecutiveLocalOriginFailure: consecutiveLocalOriginFailures,
        enforcingConsecutiveLocalOriginFailure: 100,
      }),
    }),
    interval: input.intervalMs === undefined ? undefined : durationOfMs(input.intervalMs),
    baseEjectionTime: input.baseEjectionMs === undefined ? undefined : durationOfMs(input.baseEjectionMs),
    maxEjectionPercent: input.maxEjectionPercent,
  };
}

const enforcing = (count: number | undefined): number | undefined => (count === undefined ? undefined : count > 0 ? 100 : 0);
