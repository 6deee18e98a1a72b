import { quote } from "../../../base/quote.ts";
import type { Port, Server } from "../../../gen/istio/networking/v1alpha3/gateway_pb.js";
import { ServerTLSSettings_TLSmode as Mode, type ServerTLSSettings } from "../../../gen/istio/networking/v1alpha3/shared_pb.js";
import { isHttp, isTls } from "../../../model/protocol.ts";
import { addressFault, UNIX_PREFIX, unixPathFault } from "../../checks/address.ts";
import type { Place } from "../../checks/place.ts";
import { parseProtocol, portFault, targetPortFault } from "../../checks/port.ts";
import { checkScopedHost } from "../../checks/scoped-host.ts";
import { checkServerTls } from "../../checks/server-tls.ts";

/** One server of a gateway. `gatewayApi` is set for servers made from the Gateway API. */
export function checkServer(server: Server, gatewayApi: boolean, place: Place): void {
  if (server.hosts.length === 0) place.in("hosts").fault("field.required", "a server needs at least one host");
  for (const [index, host] of server.hosts.entries())
    checkScopedHost(host, gatewayApi ? "gateway-api" : "gateway", place.in("hosts", index));
  checkServerPort(server.port, server.bind, place.in("port"));
  checkBind(server, place.in("bind"));
  if (server.tls !== undefined) checkServerTls(server.tls, place.in("tls"));
  checkTlsFitsProtocol(server, place);
}

/** The port of a server. Only a Unix domain socket goes without a number. */
export function checkServerPort(port: Port | undefined, bind: string, place: Place): void {
  if (port === undefined) {
    place.fault("field.required", "must be set");
    return;
  }
  if (parseProtocol(port.protocol) === undefined)
    place.in("protocol").fault("field.port", `${quote(port.protocol)} is not a protocol such as HTTP, HTTPS, GRPC, TLS or TCP`);
  if (port.number > 0 || !bind.startsWith(UNIX_PREFIX)) place.in("number").check("field.port", portFault(port.number));
  place.in("targetPort").check("field.conflict", targetPortFault(port.targetPort));
  if (port.name === "") place.in("name").fault("field.required", "must be set");
}

function checkBind(server: Server, place: Place): void {
  if (server.bind === "") return;
  if (!server.bind.startsWith(UNIX_PREFIX)) {
    place.check("field.invalid", addressFault(server.bind));
    return;
  }
  place.check("field.invalid", unixPathFault(server.bind.slice(UNIX_PREFIX.length)));
  if ((server.port?.number ?? 0) !== 0) place.fault("field.conflict", "a Unix domain socket has no port number");
}

/** Whether settings are about TLS itself. A credential by name beside httpsRedirect is merely not used, as in Istio. */
const meansTls = ({ mode, serverCertificate, privateKey, caCertificates }: ServerTLSSettings): boolean =>
  (mode !== Mode.PASSTHROUGH && mode !== Mode.AUTO_PASSTHROUGH) || serverCertificate !== "" || privateKey !== "" || caCertificates !== "";

function checkTlsFitsProtocol(server: Server, place: Place): void {
  const protocol = parseProtocol(server.port?.protocol ?? "");
  if (protocol === undefined) return;
  const tls = server.tls;
  if (isTls(protocol)) {
    if (tls === undefined) place.in("tls").fault("field.required", `protocol ${protocol} needs TLS settings`);
  } else if (tls !== undefined && !isHttp(protocol)) place.in("tls").fault("field.conflict", `protocol ${protocol} takes no TLS settings`);
  else if (tls !== undefined && meansTls(tls)) {
    place.in("tls").fault("field.conflict", `protocol ${protocol} is plain text; only httpsRedirect may be set`);
  }
}
