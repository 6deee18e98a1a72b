import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type OutlierDetection, OutlierDetectionSchema } from "../../gen/envoy/config/cluster/v3/outlier_detection_pb.js";
import type { OutlierInput } from "./cluster-input.ts";

/** A reason to eject is enforced where a count is given, off where the count is 0. Success rate is never one, as in Istio. */
export function outlierDetection(input: OutlierInput): OutlierDetection {
  const { consecutive5xx, consecutiveGatewayFailures, consecutiveLocalOriginFailures, splitLocalOrigin } = input;
  return create(OutlierDetectionSchema, {
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
    interval: input.intervalMs === undefined ? undefined : durationFromMs(input.intervalMs),
    baseEjectionTime: input.baseEjectionMs === undefined ? undefined : durationFromMs(input.baseEjectionMs),
    maxEjectionPercent: input.maxEjectionPercent,
  });
}

const enforcing = (count: number | undefined): number | undefined => (count === undefined ? undefined : count > 0 ? 100 : 0);
