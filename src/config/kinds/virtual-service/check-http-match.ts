import { quote } from "../../../base/quote.ts";
import type { HTTPMatchRequest } from "../../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { checkGatewayNames } from "../../checks/gateway-names.ts";
import { headerOrClaimFault } from "../../checks/header.ts";
import { isDnsLabel } from "../../checks/host-name.ts";
import { checkLabels } from "../../checks/labels.ts";
import type { Place } from "../../checks/place.ts";
import { portFault } from "../../checks/port.ts";
import { checkExpression, checkStringMatch } from "./check-string-match.ts";

/** No regular expression: as the match of an unwanted header it means that there is any. */
const PRESENT = "*";

/** Envoy looks for no longer one. */
const LONGEST_PARAM = 1024;

/** What requests a route takes. */
export function checkHttpMatch(match: HTTPMatchRequest, place: Place): void {
  for (const name of ["headers", "withoutHeaders"] as const) {
    for (const [header, value] of Object.entries(match[name])) {
      place.in(name).check("field.invalid", headerOrClaimFault(header));
      if (name === "headers" || value.matchType.value !== PRESENT) checkStringMatch(value, place.in(name, header));
    }
  }
  for (const [param, value] of Object.entries(match.queryParams)) {
    if (param === "") place.in("queryParams").fault("field.invalid", "a query parameter needs a name");
    if (Buffer.byteLength(param) > LONGEST_PARAM)
      place.in("queryParams").fault("field.invalid", `a name must be at most ${LONGEST_PARAM} bytes long`);
    checkStringMatch(value, place.in("queryParams", param));
  }
  if (match.uri !== undefined) checkExpression(match.uri, place.in("uri"));
  for (const name of ["scheme", "method", "authority"] as const) {
    const value = match[name];
    if (value !== undefined) checkStringMatch(value, place.in(name));
  }
  checkSource(match, place);
  if (match.sourceNamespace !== "" && !isDnsLabel(match.sourceNamespace))
    place.in("sourceNamespace").fault("field.invalid", `${quote(match.sourceNamespace)} is not a namespace`);
}

/** Where a connection comes from and goes to: common to HTTP, TLS and TCP matches. As in Istio only the first say what a namespace must be. */
export function checkSource(match: Pick<HTTPMatchRequest, "port" | "sourceLabels" | "gateways">, place: Place): void {
  if (match.port !== 0) place.in("port").check("field.port", portFault(match.port));
  checkLabels(match.sourceLabels, place.in("sourceLabels"));
  checkGatewayNames(match.gateways, place.in("gateways"));
}
