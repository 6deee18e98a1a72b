import { quote } from "../../../base/quote.ts";
import type { Condition } from "../../../gen/istio/security/v1beta1/authorization_policy_pb.js";
import { subnetFault } from "../../checks/address.ts";
import type { Place } from "../../checks/place.ts";
import { MOST_ACCOUNTS, patternFault, portTextFault, serviceAccountFault } from "./check-source.ts";

type ValueFault = (text: string) => string | undefined;

const notEmpty: ValueFault = (text) => (text === "" ? "must not be empty" : undefined);

/** Attributes a condition may look at, with what their values must be. */
const ATTRIBUTES: Readonly<Record<string, ValueFault>> = {
  "source.ip": subnetFault,
  "remote.ip": subnetFault,
  "destination.ip": subnetFault,
  "destination.port": portTextFault,
  "source.namespace": notEmpty,
  "source.principal": notEmpty,
  "source.serviceAccount": (text) => notEmpty(text) ?? serviceAccountFault(text),
  "source.trustDomain": (text) => notEmpty(text) ?? patternFault(text),
  "request.auth.principal": notEmpty,
  "request.auth.audiences": notEmpty,
  "request.auth.presenter": notEmpty,
  "connection.sni": notEmpty,
};
const MAPS: readonly RegExp[] = [
  /^request\.headers\[[^[\]\0\r\n]+\]$/,
  /^request\.auth\.claims(\[[^[\]]+\])+$/,
  /^experimental\.envoy\.filters\.[^[\]]+\[[^[\]]+\]$/,
];

/** A condition on one attribute of the request or connection. */
export function checkAttribute(condition: Condition, place: Place): void {
  const fault = valueFaultOf(condition.key);
  if (fault === undefined) {
    place.in("key").fault("field.invalid", `${quote(condition.key)} is not an attribute such as source.ip or request.headers[name]`);
    return;
  }
  for (const name of ["values", "notValues"] as const) {
    for (const [index, value] of condition[name].entries()) place.in(name, index).check("field.invalid", fault(value));
    if (condition.key === "source.serviceAccount" && condition[name].length > MOST_ACCOUNTS)
      place.in(name).fault("field.invalid", `must have at most ${MOST_ACCOUNTS} elements`);
  }
}

const valueFaultOf = (key: string): ValueFault | undefined =>
  Object.hasOwn(ATTRIBUTES, key) ? ATTRIBUTES[key] : MAPS.some((map) => map.test(key)) ? notEmpty : undefined;
