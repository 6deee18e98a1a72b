import { quote } from "../../../base/quote.ts";
import {
  ServiceEntry_Location as Location,
  ServiceEntry_Resolution as Resolution,
  type ServiceEntry,
} from "../../../gen/istio/networking/v1alpha3/service_entry_pb.js";
import type { WorkloadEntry } from "../../../gen/istio/networking/v1alpha3/workload_entry_pb.js";
import { isHttp, isTcp, isTls, type Protocol } from "../../../model/protocol.ts";
import { isAddress, UNIX_PREFIX } from "../../checks/address.ts";
import { fqdnFault } from "../../checks/host-name.ts";
import { checkLabels } from "../../checks/labels.ts";
import type { Place } from "../../checks/place.ts";
import { parseProtocol } from "../../checks/port.ts";
import type { ConfigObject } from "../../object.ts";
import { checkEndpointPorts, checkWorkloadEntry } from "../workload-entry/check-workload-entry.ts";

const USE_WAYPOINT = "istio.io/use-waypoint";
const ALLOCATE_IP = "networking.istio.io/enable-autoallocate-ip";

/** How the endpoints of a service are found decides what else must and must not be given. `place` is the spec. */
export function checkResolution(spec: ServiceEntry, object: ConfigObject, place: Place): void {
  switch (spec.resolution) {
    case Resolution.NONE:
      checkNone(spec, place);
      break;
    case Resolution.STATIC:
      checkStatic(spec, place);
      break;
    case Resolution.DNS:
    case Resolution.DNS_ROUND_ROBIN:
      checkDns(spec, place);
      break;
    case Resolution.DYNAMIC_DNS:
      checkDynamicDns(spec, object, place);
      break;
    default:
      place.in("resolution").fault("field.invalid", `${spec.resolution} is not a resolution`);
  }
  warnOpaquePorts(spec, object, place);
  checkManyHosts(spec, place);
}

const portNames = (spec: ServiceEntry): ReadonlySet<string> => new Set(spec.ports.map((port) => port.name));

function checkNone(spec: ServiceEntry, place: Place): void {
  if (spec.endpoints.length > 0)
    place.in("endpoints").fault("field.conflict", "resolution NONE goes where the client went; it takes no endpoints");
  if (spec.workloadSelector !== undefined)
    place.in("workloadSelector").fault("field.ineffective", "resolution NONE goes where the client went; no workload is selected");
}

function checkStatic(spec: ServiceEntry, place: Place): void {
  const servicePorts = portNames(spec);
  if (spec.ports.length !== 1 && spec.endpoints.some(({ address }) => address.startsWith(UNIX_PREFIX))) {
    place.in("ports").fault("field.conflict", "a Unix domain socket serves exactly one port");
  }
  for (const [index, endpoint] of spec.endpoints.entries())
    checkWorkloadEntry(endpoint, { takesNames: false, servicePorts }, place.in("endpoints", index));
}

function checkDns(spec: ServiceEntry, place: Place): void {
  if (spec.resolution === Resolution.DNS_ROUND_ROBIN && spec.endpoints.length > 1)
    place.in("endpoints").fault("field.conflict", "resolution DNS_ROUND_ROBIN takes one endpoint at most");
  if (spec.endpoints.length === 0) {
    for (const [index, host] of spec.hosts.entries()) {
      if (fqdnFault(host) !== undefined)
        place.in("hosts", index).fault("field.host", `${quote(host)} cannot be looked up; give endpoints or a host without wildcard`);
    }
  }
  const servicePorts = portNames(spec);
  for (const [index, endpoint] of spec.endpoints.entries()) checkDnsEndpoint(endpoint, servicePorts, place.in("endpoints", index));
  const opaque = spec.ports.some((port) => isTcp(parseProtocol(port.protocol) ?? "Auto"));
  if (spec.addresses.length > 0 && spec.hosts.length > 1 && opaque)
    place.in("hosts").fault("field.ineffective", "several hosts share the addresses of a TCP port and cannot be told apart");
}

function checkDnsEndpoint(endpoint: WorkloadEntry, servicePorts: ReadonlySet<string>, place: Place): void {
  if (!isAddress(endpoint.address) && fqdnFault(endpoint.address) !== undefined)
    place.in("address").fault("field.host", `${quote(endpoint.address)} is neither an IP address nor a host name`);
  checkEndpointPorts(endpoint, servicePorts, place.in("ports"));
  checkLabels(endpoint.labels, place.in("labels"));
}

/** What proxies can look up the host of before they know where to connect. */
const NAMING_HOSTS: ReadonlySet<Protocol> = new Set(["HTTP", "HTTP2", "GRPC", "TLS"]);

/** Names are looked up as requests come, so all must be known from the request. */
function checkDynamicDns(spec: ServiceEntry, object: ConfigObject, place: Place): void {
  if (!spec.hosts.some((host) => host.startsWith("*.")))
    place.in("hosts").fault("field.required", "resolution DYNAMIC_DNS is for wildcard hosts");
  else
    for (const [index, host] of spec.hosts.entries())
      if (!host.startsWith("*")) place.in("hosts", index).fault("field.conflict", "resolution DYNAMIC_DNS is for wildcard hosts only");
  if (spec.addresses.length > 0) place.in("addresses").fault("field.conflict", "resolution DYNAMIC_DNS takes no addresses");
  if (spec.endpoints.length > 0) place.in("endpoints").fault("field.conflict", "resolution DYNAMIC_DNS takes no endpoints");
  if (spec.location === Location.MESH_INTERNAL && Object.hasOwn(object.labels, USE_WAYPOINT)) {
    place.in("location").fault("field.conflict", "MESH_INTERNAL with resolution DYNAMIC_DNS cannot be behind a waypoint");
  }
  for (const [index, port] of spec.ports.entries()) {
    const protocol = parseProtocol(port.protocol);
    if (protocol === undefined || !NAMING_HOSTS.has(protocol)) {
      place
        .in("ports", index, "protocol")
        .fault("field.conflict", "resolution DYNAMIC_DNS needs HTTP, HTTP2, GRPC or TLS, whose first bytes name the host");
    }
  }
}

/** Without an address, only what is written in the traffic can tell one TCP service from another. */
function warnOpaquePorts(spec: ServiceEntry, object: ConfigObject, place: Place): void {
  if (spec.addresses.length > 0 || allocatesAddresses(spec, object)) return;
  for (const [index, port] of spec.ports.entries()) {
    if (port.protocol === "" || port.protocol.toUpperCase() === "TCP") {
      place
        .in("ports", index)
        .fault("field.ineffective", "a TCP port needs addresses, or an address allocated automatically, to be told apart from others");
    }
  }
}

/** Addresses are allocated to hosts without wildcard that are not passed through as they are, unless switched off by label. */
function allocatesAddresses(spec: ServiceEntry, object: ConfigObject): boolean {
  return spec.resolution !== Resolution.NONE && spec.hosts.every((host) => !host.startsWith("*")) && object.labels[ALLOCATE_IP] !== "false";
}

/** Several hosts on a port that names none in its traffic would be one. */
function checkManyHosts(spec: ServiceEntry, place: Place): void {
  if (spec.hosts.length < 2 || spec.resolution === Resolution.NONE) return;
  const blind = spec.ports.findIndex((port) => {
    const protocol = parseProtocol(port.protocol);
    return protocol === undefined || !(isHttp(protocol) || isTls(protocol));
  });
  if (blind !== -1)
    place.in("ports", blind, "protocol").fault("field.conflict", "several hosts need HTTP or TLS ports, whose first bytes name the host");
}
