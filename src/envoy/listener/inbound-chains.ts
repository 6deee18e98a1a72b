import type { PhasedExtensions } from "../filters/extension-filter.ts";
import type { HttpManagerInput } from "../filters/http-connection-manager.ts";
import { forStrangers } from "../filters/stats-log.ts";
import type { TcpProxyInput } from "../filters/tcp-proxy.ts";
import type { DownstreamTlsInput } from "../tls/index.ts";
import { ANY_IN_MTLS, HTTP_IN_MTLS, PLAIN_HTTP, TCP_IN_MTLS } from "./alpn.ts";
import type { ChainMatch, FilterChainInput } from "./filter-chain.ts";
import type { Inspected, ListenerFiltersInput } from "./listener-filters.ts";

/** What is demanded of clients: plain text only, either, or mutual TLS only. */
export type MtlsMode = "disable" | "permissive" | "strict";

/** What a port speaks, as far as filter chains go; `auto` is found out for each connection. */
export type InboundKind = "http" | "tcp" | "auto";

interface ChainShape {
  readonly match: Omit<ChainMatch, "destinationPort">;
  readonly content: "http" | "tcp";
  /** Mutual TLS ends here; else bytes are taken as they are, also where they are TLS of the application's own. */
  readonly mtls: boolean;
}

/** The chains each kind of port needs in each mode, as Istio lays them out. */
const SHAPES: Readonly<Record<MtlsMode, Readonly<Record<InboundKind, readonly ChainShape[]>>>> = {
  permissive: {
    http: [
      { match: { transport: "tls", applicationProtocols: ANY_IN_MTLS }, content: "http", mtls: true },
      { match: { transport: "raw_buffer" }, content: "http", mtls: false },
    ],
    tcp: [
      { match: { transport: "tls", applicationProtocols: ANY_IN_MTLS }, content: "tcp", mtls: true },
      { match: { transport: "tls" }, content: "tcp", mtls: false },
      { match: { transport: "raw_buffer" }, content: "tcp", mtls: false },
    ],
    auto: [
      { match: { transport: "tls", applicationProtocols: HTTP_IN_MTLS }, content: "http", mtls: true },
      { match: { transport: "raw_buffer", applicationProtocols: PLAIN_HTTP }, content: "http", mtls: false },
      { match: { transport: "tls", applicationProtocols: TCP_IN_MTLS }, content: "tcp", mtls: true },
      { match: { transport: "raw_buffer" }, content: "tcp", mtls: false },
      { match: { transport: "tls" }, content: "tcp", mtls: false },
    ],
  },
  strict: {
    http: [{ match: { transport: "tls" }, content: "http", mtls: true }],
    tcp: [{ match: { transport: "tls" }, content: "tcp", mtls: true }],
    auto: [
      { match: { transport: "tls", applicationProtocols: HTTP_IN_MTLS }, content: "http", mtls: true },
      { match: { transport: "tls" }, content: "tcp", mtls: true },
    ],
  },
  disable: {
    http: [{ match: { transport: "raw_buffer" }, content: "http", mtls: false }],
    tcp: [{ match: { transport: "raw_buffer" }, content: "tcp", mtls: false }],
    auto: [
      { match: { transport: "raw_buffer", applicationProtocols: PLAIN_HTTP }, content: "http", mtls: false },
      { match: { transport: "raw_buffer" }, content: "tcp", mtls: false },
    ],
  },
};

/** One port of a workload: what it speaks, what it demands, and what becomes of connections. */
export interface InboundPortInput {
  /** Undefined: all ports that no other entry names, or a listener of its own. */
  readonly port: number | undefined;
  readonly kind: InboundKind;
  readonly mode: MtlsMode;
  readonly names: { readonly http: string; readonly tcp: string };
  readonly http: HttpManagerInput;
  readonly tcp: TcpProxyInput;
  /** What plain HTTP is known by, on ports that do not declare it. */
  readonly plainHttp: readonly string[];
  /** Extensions that see connections before HTTP is spoken on them. */
  readonly network?: PhasedExtensions;
  readonly mtls: DownstreamTlsInput;
  /** TLS that ends here though it is not the mesh's (Sidecar ingress.tls); counts where mutual TLS is disabled. */
  readonly ownTls?: DownstreamTlsInput;
}

/** Filter chains of one inbound port. */
export function inboundChains(input: InboundPortInput): readonly FilterChainInput[] {
  const at = (shape: ChainShape["match"]): ChainMatch => {
    const match = shape.applicationProtocols === PLAIN_HTTP ? { ...shape, applicationProtocols: input.plainHttp } : shape;
    return input.port === undefined ? match : { ...match, destinationPort: input.port };
  };
  const content = (kind: ChainShape["content"], mtls: boolean): FilterChainInput["content"] =>
    kind === "tcp"
      ? { tcp: countedBy(input.tcp, mtls) }
      : { http: countedBy(input.http, mtls), ...(input.network !== undefined && { network: input.network }) };
  if (input.mode === "disable" && input.ownTls !== undefined) {
    const kind = input.kind === "http" ? "http" : "tcp";
    return [{ name: input.names[kind], match: at({ transport: "tls" }), content: content(kind, false), tls: input.ownTls }];
  }
  return SHAPES[input.mode][input.kind].map((shape) => ({
    name: input.names[shape.content],
    match: at(shape.match),
    content: content(shape.content, shape.mtls),
    ...(shape.mtls && { tls: input.mtls }),
  }));
}

/** Requests are counted by who sent them only where a certificate says who that is. */
function countedBy<C extends HttpManagerInput | TcpProxyInput>(content: C, mtls: boolean): C {
  const logs = mtls ? content.accessLogs : forStrangers(content.accessLogs);
  return logs === content.accessLogs ? content : { ...content, accessLogs: logs };
}

/** Port number that stands for "no port in the match" below. */
const REST = 0;

/** The inspectors these chains need, and the ports they must keep off: a port without a chain that asks is left alone. */
export function inspectorsFor(chains: readonly FilterChainInput[]): Pick<ListenerFiltersInput, "tls" | "http"> {
  const ports = Map.groupBy(chains, ({ match }) => match.destinationPort ?? REST);
  const asking = (asks: (match: ChainMatch) => boolean): ReadonlySet<number> =>
    new Set([...ports].filter(([, ofPort]) => ofPort.some(({ match }) => asks(match))).map(([port]) => port));
  const tls = tlsInspected(
    asking(({ transport }) => transport === "tls"),
    [...ports.keys()],
  );
  const http = httpInspected(
    asking(({ applicationProtocols = [] }) => PLAIN_HTTP.some((one) => applicationProtocols.includes(one))),
    [...ports.keys()],
  );
  return { ...(tls !== undefined && { tls }), ...(http !== undefined && { http }) };
}

function tlsInspected(asking: ReadonlySet<number>, ports: readonly number[]): Inspected | undefined {
  if (asking.size === 0) return undefined;
  if (!asking.has(REST)) return { on: "only", ports: sorted([...asking]) };
  return allBut(ports.filter((port) => !asking.has(port)));
}

/** Istio keeps HTTP inspection on by default and lists the ports that do without, the rest among them as port 0. */
function httpInspected(asking: ReadonlySet<number>, ports: readonly number[]): Inspected | undefined {
  return asking.size === 0 ? undefined : allBut(ports.filter((port) => !asking.has(port)));
}

const allBut = (ports: readonly number[]): Inspected => (ports.length === 0 ? { on: "all" } : { on: "allBut", ports: sorted(ports) });

const sorted = (ports: readonly number[]): readonly number[] => [...ports].sort((a, b) => a - b);
