import { quote } from "../../../base/quote.ts";
import { ServerTLSSettings_TLSmode as Mode, type ServerTLSSettings } from "../../../gen/istio/networking/v1alpha3/shared_pb.js";
import type { IstioIngressListener } from "../../../gen/istio/networking/v1alpha3/sidecar_pb.js";
import { isHttp, isTls } from "../../../model/protocol.ts";
import { addressFault, splitHostPort, UNIX_PREFIX, unixPathFault } from "../../checks/address.ts";
import { checkConnectionPool } from "../../checks/connection-pool.ts";
import type { Place } from "../../checks/place.ts";
import { parseProtocol, portFault, portNameFault, protocolFault, targetPortFault } from "../../checks/port.ts";
import { checkServerTls } from "../../checks/server-tls.ts";

const OWN_ADDRESSES: ReadonlySet<string> = new Set(["", "127.0.0.1", "0.0.0.0", "::1", "::"]);

/** Ports a Sidecar opens for the workload. */
export function checkIngress(listeners: readonly IstioIngressListener[], place: Place): void {
  const ports = new Set<number>();
  for (const [index, listener] of listeners.entries()) {
    const at = place.in(index);
    const port = listener.port;
    if (port === undefined) {
      at.in("port").fault("field.required", "must be set");
      continue;
    }
    at.in("port", "targetPort").check("field.conflict", targetPortFault(port.targetPort));
    if (port.name !== "") at.in("port", "name").check("field.port", portNameFault(port.name));
    at.in("port", "number").check("field.port", portFault(port.number));
    at.in("port", "protocol").check("field.port", protocolFault(port.protocol));
    if (listener.bind !== "") at.in("bind").check("field.invalid", addressFault(listener.bind));
    if (ports.has(port.number)) at.in("port", "number").fault("field.duplicate", `another listener has port ${port.number}`);
    ports.add(port.number);
    checkListener(listener, at);
  }
}

function checkListener(listener: IstioIngressListener, place: Place): void {
  const protocol = parseProtocol(listener.port?.protocol ?? "");
  if (listener.defaultEndpoint !== "") checkDefaultEndpoint(listener.defaultEndpoint, place.in("defaultEndpoint"));
  if (listener.tls !== undefined) {
    if (protocol === undefined || !isTls(protocol))
      place.in("tls").fault("field.conflict", "only protocols HTTPS and TLS take TLS settings");
    checkIngressTls(listener.tls, place.in("tls"));
  }
  if (listener.connectionPool === undefined) return;
  checkConnectionPool(listener.connectionPool, place.in("connectionPool"));
  if (listener.connectionPool.http === undefined) return;
  const http = place.in("connectionPool", "http");
  if (protocol === undefined) http.fault("field.ineffective", "the port declares no protocol: only the tcp settings are sure to apply");
  else if (!isHttp(protocol)) http.fault("field.ineffective", `the port speaks ${protocol}, so only the tcp settings apply`);
}

/** Where the application listens: always on this machine. */
function checkDefaultEndpoint(text: string, place: Place): void {
  if (text.startsWith(UNIX_PREFIX)) {
    place.check("field.invalid", unixPathFault(text.slice(UNIX_PREFIX.length)));
    return;
  }
  const parts = splitHostPort(text);
  if (parts === undefined || !OWN_ADDRESSES.has(parts.host)) {
    place.fault("field.invalid", `${quote(text)} must be 127.0.0.1:<port>, 0.0.0.0:<port>, [::1]:<port>, [::]:<port> or unix://<path>`);
  } else if (!/^\d+$/.test(parts.port)) place.fault("field.port", `${quote(parts.port)} is not a port`);
  else place.check("field.port", portFault(Number(parts.port)));
}

function checkIngressTls(tls: ServerTLSSettings, place: Place): void {
  const unsupported = "is not supported for a Sidecar";
  for (const name of ["subjectAltNames", "credentialNames", "tlsCertificates"] as const)
    if (tls[name].length > 0) place.in(name).fault("field.conflict", unsupported);
  if (tls.credentialName !== "") place.in("credentialName").fault("field.conflict", unsupported);
  if (tls.httpsRedirect) place.in("httpsRedirect").fault("field.conflict", unsupported);
  if (tls.mode === Mode.ISTIO_MUTUAL || tls.mode === Mode.AUTO_PASSTHROUGH)
    place.in("mode").fault("field.conflict", `${Mode[tls.mode]} ${unsupported}`);
  checkServerTls(tls, place);
}
