import { EdgeError, messageOf } from "../../base/errors.ts";

/** How injection saw one probe of the application. */
export type AppProbe = { readonly timeoutMs: number } & (
  | { readonly kind: "http"; readonly port: number; readonly path: string; readonly tls: boolean; readonly headers: readonly HttpHeader[] }
  | { readonly kind: "tcp"; readonly port: number }
  | { readonly kind: "grpc"; readonly port: number; readonly service: string }
);

export interface HttpHeader {
  readonly name: string;
  readonly value: string;
}

const PATH = /^\/(app-health|app-lifecycle)\/[^/]+\/(livez|readyz|startupz|prestopz|poststartz)$/;
const DEFAULT_TIMEOUT_SECONDS = 1;

/** Reads ISTIO_KUBE_APP_PROBERS: path on the agent's port to a probe in Kubernetes' form. Throws `EdgeError` that names what is wrong. */
export function readAppProbes(json: string): ReadonlyMap<string, AppProbe> {
  if (json.trim() === "") return new Map();
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw wrong(messageOf(error));
  }
  const entries = Object.entries(recordOf(value) ?? fail("it is not an object"));
  return new Map(
    entries.map(([path, probe]) => [
      path,
      PATH.test(path) ? readProbe(path, recordOf(probe) ?? {}) : fail(`${path} is no path of a probe`),
    ]),
  );
}

function readProbe(path: string, probe: Fields): AppProbe {
  const seconds = probe.timeoutSeconds;
  const timeoutMs = (typeof seconds === "number" && seconds > 0 ? seconds : DEFAULT_TIMEOUT_SECONDS) * 1_000;
  const [http, tcp, grpc] = [recordOf(probe.httpGet), recordOf(probe.tcpSocket), recordOf(probe.grpc)];
  if ([http, tcp, grpc].filter((one) => one !== undefined).length !== 1) fail(`${path} needs one of httpGet, tcpSocket and grpc`);
  if (http !== undefined)
    return {
      kind: "http",
      timeoutMs,
      port: portOf(path, http.port),
      path: `/${textOf(http.path)}`.replace(/^\/+/, "/"),
      tls: textOf(http.scheme).toUpperCase() === "HTTPS",
      headers: headersOf(http.httpHeaders),
    };
  if (tcp !== undefined) return { kind: "tcp", timeoutMs, port: portOf(path, tcp.port) };
  return { kind: "grpc", timeoutMs, port: portOf(path, grpc?.port), service: textOf(grpc?.service) };
}

type Fields = Readonly<Record<string, unknown>>;

const recordOf = (value: unknown): Fields | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;
const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** Injection has replaced names of ports by their numbers. */
function portOf(path: string, value: unknown): number {
  const port = typeof value === "number" ? value : Number.NaN;
  return Number.isInteger(port) && port > 0 && port <= 65_535 ? port : fail(`the port of ${path} is no number of a port`);
}

function headersOf(value: unknown): readonly HttpHeader[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((header) => {
    const { name, value: text } = recordOf(header) ?? {};
    return typeof name === "string" && name !== "" ? [{ name, value: textOf(text) }] : [];
  });
}

const wrong = (reason: string): EdgeError =>
  new EdgeError("usage", `ISTIO_KUBE_APP_PROBERS cannot be read: ${reason}`, { hint: "injection writes it; it should not be set by hand" });

function fail(reason: string): never {
  throw wrong(reason);
}
