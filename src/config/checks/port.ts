import { quote } from "../../base/quote.ts";
import type { Protocol } from "../../model/protocol.ts";
import { isDnsLabel } from "./host-name.ts";

const HIGHEST_PORT = 65_535;

/** The names of protocols, however a user writes their case. */
const PROTOCOLS: Readonly<Record<string, Protocol>> = {
  tcp: "TCP",
  udp: "UDP",
  grpc: "GRPC",
  "grpc-web": "GRPC-WEB",
  http: "HTTP",
  http_proxy: "HTTP_PROXY",
  http2: "HTTP2",
  https: "HTTPS",
  tls: "TLS",
  mongo: "MONGO",
  redis: "REDIS",
  mysql: "MYSQL",
};

/** The protocol a port declares by name; undefined for none or an unknown one. */
export const parseProtocol = (name: string): Protocol | undefined =>
  Object.hasOwn(PROTOCOLS, name.toLowerCase()) ? PROTOCOLS[name.toLowerCase()] : undefined;

/** What keeps a number from being a port. */
export const portFault = (port: number): string | undefined =>
  Number.isInteger(port) && port >= 1 && port <= HIGHEST_PORT ? undefined : `port ${port} is outside 1 to ${HIGHEST_PORT}`;

/** Listeners of gateways and sidecars stand on the port itself: where else it leads, Services say. */
export const targetPortFault = (targetPort: number): string | undefined =>
  targetPort === 0 ? undefined : "has no effect here and must not be set; a Service says which port its pods have";

/** A port's name is a DNS label: it becomes part of other names. */
export const portNameFault = (name: string): string | undefined =>
  isDnsLabel(name) ? undefined : `${quote(name)} is not a port name: letters, digits and dashes, at most 63`;

/** A declared protocol; an empty one is allowed, since Envoy then looks at the first bytes. */
export const protocolFault = (name: string): string | undefined =>
  name === "" || parseProtocol(name) !== undefined
    ? undefined
    : `${quote(name)} is not a protocol; known are ${Object.values(PROTOCOLS).join(", ")}`;
