import type { Headers } from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { headerChangeFault, headerOperatorFault, headerValueFault, requestHeaderChangeFault } from "../../checks/header.ts";
import type { Place } from "../../checks/place.ts";

/** Headers that a route adds, sets or removes. */
export function checkHeaders(headers: Headers, place: Place): void {
  for (const side of ["request", "response"] as const) {
    const changes = headers[side];
    if (changes === undefined) continue;
    const nameFault = side === "request" ? requestHeaderChangeFault : headerChangeFault;
    for (const verb of ["add", "set"] as const) {
      for (const [name, value] of Object.entries(changes[verb])) {
        place.in(side, verb).check("field.invalid", nameFault(name));
        const at = place.in(side, verb, name);
        at.check("field.invalid", headerValueFault(value));
        at.check("field.ineffective", headerOperatorFault(value));
      }
    }
    for (const [index, name] of changes.remove.entries()) place.in(side, "remove", index).check("field.invalid", headerChangeFault(name));
  }
}
