import { quote } from "../../base/quote.ts";
import { isAddress } from "./address.ts";
import { isDnsLabel, partialWildcardFault, wildcardDomainFault } from "./host-name.ts";
import type { Place } from "./place.ts";

/** Who lists the host: each allows other namespaces. */
export type HostOwner = "sidecar" | "gateway" | "gateway-api";

/** Hosts as `namespace/host`, where the namespace is a name, `.` (own) or `*` (any). A gateway may leave it out. */
export function checkScopedHost(text: string, owner: HostOwner, place: Place): void {
  const slash = text.indexOf("/");
  if (slash === -1) {
    if (owner === "sidecar") place.fault("field.host", `${quote(text)} must have the form namespace/host`);
    else checkHostPart(text, owner, place);
    return;
  }
  const namespace = text.slice(0, slash);
  const host = text.slice(slash + 1);
  if (namespace === "" || host === "") place.fault("field.host", `${quote(text)} must have both a namespace and a host`);
  else if (!isNamespacePart(namespace, owner)) place.fault("field.host", `${quote(namespace)} is not a namespace`);
  if (host !== "") checkHostPart(host, owner, place);
}

/** A sidecar may take out what it would otherwise import: `~/host`, or `~ns/host`. */
function isNamespacePart(namespace: string, owner: HostOwner): boolean {
  if (namespace === "*" || namespace === ".") return true;
  if (namespace === "~") return owner !== "gateway";
  return isDnsLabel(owner === "sidecar" && namespace.startsWith("~") ? namespace.slice(1) : namespace);
}

function checkHostPart(host: string, owner: HostOwner, place: Place): void {
  if (host === "*") return;
  if (!host.includes(".") && !isAddress(host)) place.fault("field.host", `${quote(host)} is a short name; write the fully qualified one`);
  if (owner !== "sidecar" && isAddress(host)) return;
  place.check("field.host", wildcardDomainFault(host) ?? partialWildcardFault(host));
}
