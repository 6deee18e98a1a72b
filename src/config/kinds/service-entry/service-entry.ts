import { quote } from "../../../base/quote.ts";
import {
  ServiceEntry_Resolution as Resolution,
  type ServiceEntry,
  ServiceEntrySchema,
} from "../../../gen/istio/networking/v1alpha3/service_entry_pb.js";
import { subnetFault } from "../../checks/address.ts";
import { checkExportTo } from "../../checks/export-to.ts";
import { partialWildcardFault, wildcardDomainFault } from "../../checks/host-name.ts";
import { checkSelectorLabels } from "../../checks/labels.ts";
import type { Place } from "../../checks/place.ts";
import { portFault, portNameFault, protocolFault } from "../../checks/port.ts";
import type { ConfigObject } from "../../object.ts";
import { istioKind } from "../istio-kind.ts";
import { endpointRules } from "../workload-entry/workload-entry.ts";
import { checkResolution } from "./check-resolution.ts";

/** Services and their endpoints that no registry knows. */
export const serviceEntry = istioKind({
  kind: "ServiceEntry",
  group: "networking.istio.io",
  versions: ["v1", "v1beta1", "v1alpha3"],
  plural: "serviceentries",
  singular: "serviceentry",
  shortNames: ["se"],
  columns: { Hosts: ".spec.hosts", Location: ".spec.location", Resolution: ".spec.resolution", Age: ".metadata.creationTimestamp" },
  schema: ServiceEntrySchema,
  rules: {
    hosts: { maxItems: 256 },
    addresses: { maxItems: 256 },
    "addresses[]": { maxLength: 64 },
    ports: { maxItems: 256 },
    "ports[].name": { maxLength: 256 },
    "ports[].protocol": { maxLength: 256 },
    endpoints: { maxItems: 4096 },
    "workloadSelector.labels": { maxProperties: 256 },
    ...endpointRules("endpoints[]."),
  },
  needsSpec: true,
  check: checkServiceEntry,
});

function checkServiceEntry(spec: ServiceEntry, place: Place, object: ConfigObject<ServiceEntry>): void {
  checkSelector(spec, place);
  checkHosts(spec, place.in("hosts"));
  checkAddresses(spec, place.in("addresses"));
  checkPorts(spec, place.in("ports"));
  checkResolution(spec, object, place);
  checkExportTo(spec.exportTo, { namespace: object.namespace, isServiceEntry: true }, place.in("exportTo"));
}

function checkSelector(spec: ServiceEntry, place: Place): void {
  if (spec.workloadSelector === undefined) return;
  checkSelectorLabels(spec.workloadSelector.labels, place.in("workloadSelector"));
  if (spec.endpoints.length > 0) place.in("workloadSelector").fault("field.conflict", "cannot be combined with endpoints");
}

function checkHosts(spec: ServiceEntry, place: Place): void {
  if (spec.hosts.length === 0) place.fault("field.required", "a service needs at least one host");
  for (const [index, host] of spec.hosts.entries()) {
    const at = place.in(index);
    if (host === "*") at.fault("field.host", "a service cannot be every host");
    else {
      at.check("field.host", wildcardDomainFault(host));
      at.check("field.ineffective", partialWildcardFault(host));
    }
  }
}

function checkAddresses(spec: ServiceEntry, place: Place): void {
  const takesBlocks = spec.resolution === Resolution.NONE || spec.resolution === Resolution.STATIC;
  for (const [index, address] of spec.addresses.entries()) {
    place.in(index).check("field.invalid", subnetFault(address));
    if (address.includes("/") && !takesBlocks) place.in(index).fault("field.conflict", "a CIDR block needs resolution NONE or STATIC");
  }
}

function checkPorts(spec: ServiceEntry, place: Place): void {
  const names = new Set<string>();
  const numbers = new Set<number>();
  for (const [index, port] of spec.ports.entries()) {
    const at = place.in(index);
    if (names.has(port.name)) at.in("name").fault("field.duplicate", `another port is named ${quote(port.name)}`);
    if (numbers.has(port.number)) at.in("number").fault("field.duplicate", `another port has the number ${port.number}`);
    names.add(port.name);
    numbers.add(port.number);
    at.in("name").check("field.port", portNameFault(port.name));
    at.in("number").check("field.port", portFault(port.number));
    at.in("protocol").check("field.port", protocolFault(port.protocol));
    if (port.protocol.toUpperCase() === "UDP") at.in("protocol").fault("field.ineffective", "UDP is not proxied, so this port is left out");
    if (port.targetPort !== 0) at.in("targetPort").check("field.port", portFault(port.targetPort));
  }
}
