import { quote } from "../../base/quote.ts";
import type { Destination } from "../../gen/istio/networking/v1alpha3/shared_pb.js";
import { isDnsLabel, wildcardDomainFault } from "./host-name.ts";
import type { Place } from "./place.ts";
import { portFault } from "./port.ts";

/** Where a route or an egress proxy leads: a host, perhaps one of its subsets and ports. */
export function checkDestination(destination: Destination, place: Place): void {
  const host = place.in("host");
  if (destination.host === "*") host.fault("field.host", "a destination cannot be every host");
  else host.check("field.host", wildcardDomainFault(destination.host));
  if (destination.subset !== "" && !isDnsLabel(destination.subset))
    place.in("subset").fault("field.invalid", `${quote(destination.subset)} is not a DNS label`);
  if (destination.port !== undefined) place.in("port", "number").check("field.port", portFault(destination.port.number));
}
