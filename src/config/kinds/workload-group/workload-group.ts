import { quote } from "../../../base/quote.ts";
import {
  type HTTPHealthCheckConfig,
  type ReadinessProbe,
  type WorkloadGroup,
  WorkloadGroupSchema,
} from "../../../gen/istio/networking/v1alpha3/workload_group_pb.js";
import { UNIX_PREFIX } from "../../checks/address.ts";
import { strictHeaderNameFault } from "../../checks/header.ts";
import { checkLabels, labelKeyFault } from "../../checks/labels.ts";
import type { Place } from "../../checks/place.ts";
import { portFault } from "../../checks/port.ts";
import { istioKind } from "../istio-kind.ts";
import { checkEndpointPorts, checkUnixEndpoint } from "../workload-entry/check-workload-entry.ts";
import { endpointRules } from "../workload-entry/workload-entry.ts";

/** Template and health check for workloads that register themselves. */
export const workloadGroup = istioKind({
  kind: "WorkloadGroup",
  group: "networking.istio.io",
  versions: ["v1", "v1beta1", "v1alpha3"],
  plural: "workloadgroups",
  singular: "workloadgroup",
  shortNames: ["wg"],
  columns: { Age: ".metadata.creationTimestamp" },
  schema: WorkloadGroupSchema,
  rules: {
    "metadata.labels": { maxProperties: 256 },
    "metadata.annotations": { maxProperties: 256 },
    "probe.exec.command[]": { minLength: 1 },
    ...endpointRules("template."),
  },
  needsSpec: true,
  check: checkWorkloadGroup,
});

function checkWorkloadGroup(spec: WorkloadGroup, place: Place): void {
  checkLabels(spec.metadata?.labels ?? {}, place.in("metadata", "labels"));
  for (const key of Object.keys(spec.metadata?.annotations ?? {}))
    place.in("metadata", "annotations").check("field.invalid", labelKeyFault(key));
  const template = spec.template;
  if (template === undefined) place.in("template").fault("field.required", "must be set");
  else {
    // The workload fills in its address when it registers.
    if (template.address.startsWith(UNIX_PREFIX)) checkUnixEndpoint(template, place.in("template"));
    checkEndpointPorts(template, undefined, place.in("template", "ports"));
    checkLabels(template.labels, place.in("template", "labels"));
  }
  if (spec.probe !== undefined) checkProbe(spec.probe, place.in("probe"));
}

function checkProbe(probe: ReadinessProbe, place: Place): void {
  for (const name of ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] as const) {
    if (probe[name] < 0) place.in(name).fault("field.range", "must not be negative");
  }
  const method = probe.healthCheckMethod;
  switch (method.case) {
    case undefined:
      place.fault("field.required", "say how to probe: httpGet, tcpSocket, exec or grpc");
      break;
    case "httpGet":
      checkHttpProbe(method.value, place.in("httpGet"));
      break;
    case "exec":
      if (method.value.command.length === 0) place.in("exec", "command").fault("field.required", "must be set");
      break;
    default:
      place.in(method.case, "port").check("field.port", portFault(method.value.port));
  }
}

function checkHttpProbe(probe: HTTPHealthCheckConfig, place: Place): void {
  place.in("port").check("field.port", portFault(probe.port));
  if (!["", "HTTP", "HTTPS"].includes(probe.scheme.toUpperCase()))
    place.in("scheme").fault("field.invalid", `${quote(probe.scheme)} is neither HTTP nor HTTPS`);
  for (const [index, header] of probe.httpHeaders.entries())
    place.in("httpHeaders", index, "name").check("field.invalid", strictHeaderNameFault(header.name));
}
