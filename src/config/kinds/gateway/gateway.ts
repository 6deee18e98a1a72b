import { quote } from "../../../base/quote.ts";
import { type Gateway, GatewaySchema } from "../../../gen/istio/networking/v1alpha3/gateway_pb.js";
import { isHttp } from "../../../model/protocol.ts";
import { isDnsLabel } from "../../checks/host-name.ts";
import type { Place } from "../../checks/place.ts";
import { parseProtocol } from "../../checks/port.ts";
import type { ConfigObject } from "../../object.ts";
import { istioKind } from "../istio-kind.ts";
import { checkServer } from "./check-server.ts";

/** Set on Gateways made from the Gateway API, whose rules differ a little. */
const GATEWAY_SEMANTICS = "internal.istio.io/gateway-semantics";

/** Ports and hosts that proxies at the edge listen on. */
export const gateway = istioKind({
  kind: "Gateway",
  group: "networking.istio.io",
  versions: ["v1", "v1beta1", "v1alpha3"],
  plural: "gateways",
  singular: "gateway",
  shortNames: ["gw"],
  schema: GatewaySchema,
  rules: { "servers[].tls.credentialNames": { minItems: 1, maxItems: 2 }, "servers[].tls.tlsCertificates": { minItems: 1, maxItems: 2 } },
  check: checkGateway,
});

function checkGateway(spec: Gateway, place: Place, object: ConfigObject<Gateway>): void {
  const gatewayApi = object.annotations[GATEWAY_SEMANTICS] === "gateway";
  if (!gatewayApi && !isDnsLabel(object.name))
    place.fault("metadata.name", `${quote(object.name)} is not a DNS label, as the name of a gateway must be`);
  if (spec.servers.length === 0) place.in("servers").fault("field.required", "a gateway needs at least one server");
  const names = new Set<string>();
  for (const [index, server] of spec.servers.entries()) {
    const at = place.in("servers", index);
    checkServer(server, gatewayApi, at);
    const port = server.port;
    if (port === undefined) continue;
    if (names.has(port.name)) at.in("port", "name").fault("field.duplicate", `another server's port is named ${quote(port.name)}`);
    names.add(port.name);
    const protocol = parseProtocol(port.protocol);
    if (server.tls?.httpsRedirect === true && (protocol === undefined || !isHttp(protocol))) {
      at.in("tls", "httpsRedirect").fault("field.ineffective", "only plain HTTP can be redirected to HTTPS");
    }
  }
}
