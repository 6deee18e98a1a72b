import { quote } from "../../../base/quote.ts";
import { CaptureMode, type IstioEgressListener, type SidecarPort } from "../../../gen/istio/networking/v1alpha3/sidecar_pb.js";
import { addressFault, UNIX_PREFIX, unixPathFault } from "../../checks/address.ts";
import type { Place } from "../../checks/place.ts";
import { portFault, portNameFault, protocolFault, targetPortFault } from "../../checks/port.ts";
import { checkScopedHost } from "../../checks/scoped-host.ts";

/** What a Sidecar imports: listeners for single ports, then at most one for all the rest. */
export function checkEgress(listeners: readonly IstioEgressListener[], namespace: string, place: Place): void {
  const taken = new Set<string | number>();
  for (const [index, listener] of listeners.entries()) {
    const at = place.in(index);
    if (listener.port === undefined) {
      if (listener.bind !== "" && !listener.bind.startsWith(UNIX_PREFIX)) at.in("bind").check("field.invalid", addressFault(listener.bind));
      if (index < listeners.length - 1)
        at.in("port").fault("field.conflict", "the listener without port takes all the rest, so it must be the last and only one");
    } else {
      checkPort(listener.port, listener, at);
      const key = listener.port.number === 0 ? listener.bind : listener.port.number;
      if (taken.has(key)) at.fault("field.duplicate", `another listener is bound to ${key}`);
      taken.add(key);
    }
    checkHosts(listener.hosts, namespace, at.in("hosts"));
  }
}

function checkPort(port: SidecarPort, listener: IstioEgressListener, place: Place): void {
  place.in("port", "targetPort").check("field.conflict", targetPortFault(port.targetPort));
  if (port.name !== "") place.in("port", "name").check("field.port", portNameFault(port.name));
  place.in("port", "protocol").check("field.port", protocolFault(port.protocol));
  if (port.number !== 0) {
    place.in("port", "number").check("field.port", portFault(port.number));
    if (listener.bind !== "") place.in("bind").check("field.invalid", addressFault(listener.bind));
    return;
  }
  if (!listener.bind.startsWith(UNIX_PREFIX))
    place.in("bind").fault("field.required", "without a port number the listener must be bound to unix://<path>");
  else place.in("bind").check("field.invalid", unixPathFault(listener.bind.slice(UNIX_PREFIX.length)));
  if (listener.captureMode === CaptureMode.IPTABLES)
    place.in("captureMode").fault("field.conflict", "traffic to a Unix domain socket cannot be captured");
}

function checkHosts(hosts: readonly string[], namespace: string, place: Place): void {
  if (hosts.length === 0) place.fault("field.required", "an egress listener needs at least one host");
  for (const [index, host] of hosts.entries()) checkScopedHost(host, "sidecar", place.in(index));
  warnRedundant(hosts, namespace, place);
}

/** Hosts that others already import. Exclusions (`~…`) are never redundant. */
function warnRedundant(hosts: readonly string[], namespace: string, place: Place): void {
  const full = hosts.map((host) => (host.startsWith("./") ? `${namespace}/${host.slice(2)}` : host));
  const imports = full.filter((host) => !host.startsWith("~"));
  if (imports.includes("*/*") && imports.length > 1) {
    place.fault("field.ineffective", "*/* imports everything, so the other hosts have no effect");
    return;
  }
  for (const [index, host] of full.entries()) {
    const all = `${host.split("/", 1)[0]}/*`;
    const repeated = full.indexOf(host) < index || (host !== all && full.includes(all));
    if (!host.startsWith("~") && repeated)
      place.in(index).fault("field.ineffective", `${quote(host)} is already imported by another entry`);
  }
}
