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

export const isHttp = (protocol: Protocol): boolean => HTTP.has(protocol);
export const isHttp2 = (protocol: Protocol): boolean => HTTP2.has(protocol);
export const isTcp = (protocol: Protocol): boolean => TCP.has(protocol);
export const isTls = (protocol: Protocol): boolean => protocol === "TLS" || protocol === "HTTPS";
