import {
  OutboundTrafficPolicy_Mode as OutboundMode,
  type Sidecar,
  SidecarSchema,
} from "../../../gen/istio/networking/v1alpha3/sidecar_pb.js";
import { checkConnectionPool } from "../../checks/connection-pool.ts";
import { checkDestination } from "../../checks/destination.ts";
import { fqdnFault } from "../../checks/host-name.ts";
import { checkSelectorLabels } from "../../checks/labels.ts";
import type { Place } from "../../checks/place.ts";
import type { ConfigObject } from "../../object.ts";
import { istioKind } from "../istio-kind.ts";
import { checkEgress } from "./check-egress.ts";
import { checkIngress } from "./check-ingress.ts";

/** What a workload's proxy imports and exposes. */
export const sidecar = istioKind({
  kind: "Sidecar",
  group: "networking.istio.io",
  versions: ["v1", "v1beta1", "v1alpha3"],
  plural: "sidecars",
  singular: "sidecar",
  shortNames: [],
  schema: SidecarSchema,
  rules: {
    "workloadSelector.labels": { maxProperties: 256 },
    "ingress[].tls.credentialNames": { minItems: 1, maxItems: 2 },
    "ingress[].tls.tlsCertificates": { minItems: 1, maxItems: 2 },
  },
  check: checkSidecar,
});

function checkSidecar(spec: Sidecar, place: Place, object: ConfigObject<Sidecar>): void {
  const { workloadSelector, inboundConnectionPool, outboundTrafficPolicy } = spec;
  if (spec.ingress.length === 0 && spec.egress.length === 0 && inboundConnectionPool === undefined && outboundTrafficPolicy === undefined) {
    place.fault("field.required", "a Sidecar must set ingress, egress, inboundConnectionPool or outboundTrafficPolicy");
  }
  if (workloadSelector !== undefined) checkSelectorLabels(workloadSelector.labels, place.in("workloadSelector"));
  checkIngress(spec.ingress, place.in("ingress"));
  checkEgress(spec.egress, object.namespace, place.in("egress"));
  if (inboundConnectionPool !== undefined) checkConnectionPool(inboundConnectionPool, place.in("inboundConnectionPool"));
  checkOutbound(spec, place.in("outboundTrafficPolicy"));
}

/** Unknown destinations may be sent to a proxy, if they are let out at all. */
function checkOutbound(spec: Sidecar, place: Place): void {
  const policy = spec.outboundTrafficPolicy;
  const proxy = policy?.egressProxy;
  if (policy === undefined || proxy === undefined) return;
  const at = place.in("egressProxy");
  if (policy.mode !== OutboundMode.ALLOW_ANY) at.fault("field.conflict", "needs mode ALLOW_ANY");
  at.in("host").check("field.host", fqdnFault(proxy.host));
  checkDestination(proxy, at);
  if (proxy.port === undefined) at.in("port").fault("field.required", "must be set");
}
