import { type PeerAuthentication, PeerAuthenticationSchema } from "../../../gen/istio/security/v1beta1/peer_authentication_pb.js";
import { checkSelectorLabels } from "../../checks/labels.ts";
import type { Place } from "../../checks/place.ts";
import { portFault } from "../../checks/port.ts";
import { istioKind } from "../istio-kind.ts";
import { SELECTOR_RULES } from "../target-rules.ts";

/** Whether workloads demand mutual TLS. */
export const peerAuthentication = istioKind({
  kind: "PeerAuthentication",
  group: "security.istio.io",
  versions: ["v1", "v1beta1"],
  plural: "peerauthentications",
  singular: "peerauthentication",
  shortNames: ["pa"],
  columns: { Mode: ".spec.mtls.mode", Age: ".metadata.creationTimestamp" },
  schema: PeerAuthenticationSchema,
  rules: { "selector.matchLabels": SELECTOR_RULES, portLevelMtls: { minProperties: 1 } },
  check: checkPeerAuthentication,
});

function checkPeerAuthentication(spec: PeerAuthentication, place: Place): void {
  if (spec.selector !== undefined) checkSelectorLabels(spec.selector.matchLabels, place.in("selector"));
  const ports = Object.keys(spec.portLevelMtls);
  const chooses = Object.keys(spec.selector?.matchLabels ?? {}).length > 0;
  if (ports.length > 0 && !chooses) place.in("portLevelMtls").fault("field.conflict", "settings of single ports need a selector");
  for (const port of ports) place.in("portLevelMtls", port).check("field.port", portFault(Number(port)));
}
