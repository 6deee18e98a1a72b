import type { OutlierDetection } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import { durationFault } from "./duration.ts";
import { percentFault } from "./percent.ts";
import type { Place } from "./place.ts";

/** Ejection of endpoints that fail, of a DestinationRule or the mesh. */
export function checkOutlierDetection(outlier: OutlierDetection, place: Place): void {
  for (const name of ["interval", "baseEjectionTime"] as const) {
    const value = outlier[name];
    if (value !== undefined) place.in(name).check("field.range", durationFault(value));
  }
  if (outlier.consecutiveErrors !== 0) {
    place.in("consecutiveErrors").fault("field.deprecated", "use consecutiveGatewayErrors or consecutive5xxErrors");
  }
  if (!outlier.splitExternalLocalOriginErrors && (outlier.consecutiveLocalOriginFailures ?? 0) > 0) {
    place.in("consecutiveLocalOriginFailures").fault("field.conflict", "needs splitExternalLocalOriginErrors");
  }
  for (const [index, status] of outlier.outlierDetectionHttpErrorCodes.entries())
    if (status < 100 || status > 599)
      place.in("outlierDetectionHttpErrorCodes", index).fault("field.range", `${status} is not an HTTP status from 100 to 599`);
  for (const name of ["maxEjectionPercent", "minHealthPercent"] as const) place.in(name).check("field.range", percentFault(outlier[name]));
}
