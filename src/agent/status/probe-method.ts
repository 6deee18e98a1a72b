/** How an application is asked whether it is well. */
export type ProbeMethod =
  | { readonly kind: "http"; readonly port: number; readonly path: string; readonly tls: boolean; readonly headers: readonly HttpHeader[] }
  | { readonly kind: "tcp"; readonly port: number }
  | { readonly kind: "grpc"; readonly port: number; readonly service: string };

export interface HttpHeader {
  readonly name: string;
  readonly value: string;
}

/** An object of JSON. */
export type Fields = Readonly<Record<string, unknown>>;

/** The value where it is an object; lists are none. */
export const recordOf = (value: unknown): Fields | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;

/** The value where it is a text, else the empty one. */
export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** Reads `httpGet`, `tcpSocket` or `grpc` of a probe, in the form Kubernetes has them. Throws a sentence about `probe` where there is not exactly one. */
export function readProbeMethod(probe: string, fields: Fields): ProbeMethod {
  const [http, tcp, grpc] = [recordOf(fields.httpGet), recordOf(fields.tcpSocket), recordOf(fields.grpc)];
  if ([http, tcp, grpc].filter((one) => one !== undefined).length !== 1)
    throw new Error(`${probe} needs one of httpGet, tcpSocket and grpc`);
  if (http !== undefined)
    return {
      kind: "http",
      port: portOf(probe, http.port),
      path: `/${textOf(http.path)}`.replace(/^\/+/, "/"),
      tls: textOf(http.scheme).toUpperCase() === "HTTPS",
      headers: headersOf(http.httpHeaders),
    };
  if (tcp !== undefined) return { kind: "tcp", port: portOf(probe, tcp.port) };
  return { kind: "grpc", port: portOf(probe, grpc?.port), service: textOf(grpc?.service) };
}

/** Names of ports have been replaced by their numbers by whoever wrote the probe. */
function portOf(probe: string, value: unknown): number {
  const port = typeof value === "number" ? value : Number.NaN;
  if (Number.isInteger(port) && port > 0 && port <= 65_535) return port;
  throw new Error(`the port of ${probe} is no number of a port`);
}

function headersOf(value: unknown): readonly HttpHeader[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((header) => {
    const { name, value: text } = recordOf(header) ?? {};
    return typeof name === "string" && name !== "" ? [{ name, value: textOf(text) }] : [];
  });
}
