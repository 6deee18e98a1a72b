import { quote } from "../../../base/quote.ts";
import type { WorkloadEntry } from "../../../gen/istio/networking/v1alpha3/workload_entry_pb.js";
import { isAddress, UNIX_PREFIX, unixPathFault } from "../../checks/address.ts";
import { fqdnFault } from "../../checks/host-name.ts";
import { checkLabels } from "../../checks/labels.ts";
import type { Place } from "../../checks/place.ts";
import { portFault, portNameFault } from "../../checks/port.ts";

/** What the rules of an endpoint depend on besides it. */
export interface EndpointContext {
  /** Whether the address may be a name to look up. */
  readonly takesNames: boolean;
  /** Names of the service's ports, where the endpoint belongs to a service: only these can be mapped. */
  readonly servicePorts?: ReadonlySet<string>;
}

/** An endpoint: on its own, in a ServiceEntry, or as the template of a WorkloadGroup once it has an address. */
export function checkWorkloadEntry(entry: WorkloadEntry, context: EndpointContext, place: Place): void {
  if (entry.address.startsWith(UNIX_PREFIX)) checkUnixEndpoint(entry, place);
  else if (entry.address !== "") checkAddress(entry.address, context, place.in("address"));
  else if (entry.network === "") place.in("address").fault("field.required", "must be set");
  else place.in("address").fault("field.ineffective", `is not set: traffic goes through the gateways of network ${quote(entry.network)}`);
  checkEndpointPorts(entry, context.servicePorts, place.in("ports"));
  checkLabels(entry.labels, place.in("labels"));
}

/** A socket on the file system, which has no ports. */
export function checkUnixEndpoint(entry: WorkloadEntry, place: Place): void {
  place.in("address").check("field.invalid", unixPathFault(entry.address.slice(UNIX_PREFIX.length)));
  if (Object.keys(entry.ports).length > 0) place.in("ports").fault("field.conflict", "a Unix domain socket has no ports");
}

/** Ports of an endpoint by the names of the service's ports. */
export function checkEndpointPorts(entry: WorkloadEntry, servicePorts: ReadonlySet<string> | undefined, place: Place): void {
  for (const [name, port] of Object.entries(entry.ports)) {
    if (servicePorts !== undefined && !servicePorts.has(name))
      place.in(name).fault("field.port", `the service has no port named ${quote(name)}`);
    place.in(name).check("field.port", portNameFault(name));
    place.in(name).check("field.port", portFault(port));
  }
}

function checkAddress(address: string, context: EndpointContext, place: Place): void {
  if (isAddress(address)) return;
  if (!context.takesNames) place.fault("field.host", `${quote(address)} is not an IP address`);
  else if (fqdnFault(address) !== undefined) place.fault("field.host", `${quote(address)} is neither an IP address nor a host name`);
}
