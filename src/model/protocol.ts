/** What a port speaks. `Auto` is sniffed by Envoy. The names are those users write in ports and appProtocol, upper-cased. */
export type Protocol =
  | "HTTP"
  | "HTTP2"
  | "HTTP_PROXY"
  | "GRPC"
  | "GRPC-WEB"
  | "HTTPS"
  | "TLS"
  | "TCP"
  | "UDP"
  | "MONGO"
  | "MYSQL"
  | "REDIS"
  | "Auto";

const HTTP: ReadonlySet<Protocol> = new Set(["HTTP", "HTTP2", "HTTP_PROXY", "GRPC", "GRPC-WEB"]);
const HTTP2: ReadonlySet<Protocol> = new Set(["HTTP2", "GRPC", "GRPC-WEB"]);
const TCP: ReadonlySet<Protocol> = new Set(["TCP", "HTTPS", "TLS", "MONGO", "MYSQL", "REDIS"]);

/** Whether requests can be told apart, so that routes apply. */
export const isHttp = (protocol: Protocol): boolean => HTTP.has(protocol);
/** Whether it needs HTTP/2 all the way. */
export const isHttp2 = (protocol: Protocol): boolean => HTTP2.has(protocol);
/** Whether it is passed on as bytes. */
export const isTcp = (protocol: Protocol): boolean => TCP.has(protocol);
/** Whether the application itself speaks TLS, so that a proxy sees the server name alone. */
export const isTls = (protocol: Protocol): boolean => protocol === "TLS" || protocol === "HTTPS";

const BY_NAME: ReadonlyMap<string, Protocol> = new Map(
  (["HTTP", "HTTP2", "HTTP_PROXY", "GRPC", "GRPC-WEB", "HTTPS", "TLS", "TCP", "UDP", "MONGO", "MYSQL", "REDIS"] as const).map((name) => [
    name,
    name,
  ]),
);

/** Names that Kubernetes itself defines for `appProtocol`. */
const KUBERNETES_APP_PROTOCOLS: ReadonlyMap<string, Protocol> = new Map([
  ["kubernetes.io/h2c", "HTTP2"],
  ["kubernetes.io/grpc", "GRPC"],
  ["kubernetes.io/ws", "HTTP"],
  ["kubernetes.io/wss", "HTTPS"],
]);

/** Ports of protocols in which the server speaks first (SMTP, DNS, MySQL, MongoDB): sniffing would wait for a client that waits too. */
const SERVER_FIRST_PORTS: ReadonlySet<number> = new Set([25, 53, 3306, 27017]);

/** A protocol by its name in any case, as the `protocol` of a ServiceEntry, Sidecar or Gateway port gives it; undefined where unknown. */
export const parseProtocol = (name: string): Protocol | undefined => BY_NAME.get(name.toUpperCase());

/** What a Kubernetes Service says about a port. */
export interface NamedPort {
  readonly name: string;
  readonly number: number;
  /** TCP, UDP or SCTP; the last two are not proxied, and are one here. */
  readonly transport: string;
  readonly appProtocol: string | undefined;
}

/**
 * What a Kubernetes port speaks, by Istio's "Protocol Selection": `appProtocol` counts before the name, the name is `<protocol>[-<suffix>]`,
 * and where neither says it the traffic is sniffed, save on the well-known ports of server-first protocols.
 */
export function protocolOfPort(port: NamedPort): Protocol {
  if (port.transport === "UDP" || port.transport === "SCTP") return "UDP";
  if (port.appProtocol !== undefined) {
    const known = KUBERNETES_APP_PROTOCOLS.get(port.appProtocol.toLowerCase());
    if (known !== undefined) return known;
  }
  const text = (port.appProtocol ?? port.name).toUpperCase();
  const protocol = text.startsWith("GRPC-WEB") ? "GRPC-WEB" : parseProtocol(text.split("-", 1)[0] ?? "");
  return protocol ?? (SERVER_FIRST_PORTS.has(port.number) ? "TCP" : "Auto");
}
