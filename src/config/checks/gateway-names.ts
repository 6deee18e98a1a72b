import { quote } from "../../base/quote.ts";
import { fqdnFault, isDnsLabel } from "./host-name.ts";
import type { Place } from "./place.ts";

/** References to gateways: `namespace/name`, `name`, or `mesh` for all sidecars. */
export function checkGatewayNames(names: readonly string[], place: Place): void {
  for (const [index, name] of names.entries()) {
    const at = place.in(index);
    const slash = name.indexOf("/");
    if (slash === -1) checkPlainName(name, at);
    else if (!isDnsLabel(name.slice(0, slash))) at.fault("field.invalid", `${quote(name.slice(0, slash))} is not a namespace`);
    else if (!isDnsLabel(name.slice(slash + 1))) at.fault("field.invalid", `${quote(name.slice(slash + 1))} is not the name of a gateway`);
  }
}

/** Names with dots are an old form, read as `name.namespace.svc…`. */
function checkPlainName(name: string, place: Place): void {
  place.check("field.invalid", fqdnFault(name));
  const [gateway, namespace] = name.split(".");
  if (namespace !== undefined) place.fault("field.deprecated", `write ${quote(`${namespace}/${gateway}`)} instead of ${quote(name)}`);
}
