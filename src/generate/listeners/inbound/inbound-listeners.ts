import type { HttpManagerInput } from "../../../envoy/filters/http-connection-manager.ts";
import type { PolicyFilters } from "../../../envoy/filters/policy-filters.ts";
import type { TcpProxyInput } from "../../../envoy/filters/tcp-proxy.ts";
import type { FilterChainInput } from "../../../envoy/listener/filter-chain.ts";
import { type InboundPortInput, inboundChains, inspectorsFor, type MtlsMode } from "../../../envoy/listener/inbound-chains.ts";
import type { ListenerInput } from "../../../envoy/listener/listener.ts";
import { type DownstreamTlsInput, INBOUND_CIPHERS, ownNames } from "../../../envoy/tls/index.ts";
import { type MeshConfig, MeshConfig_TLSConfig_TLSProtocol as MeshTls } from "../../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { isHttp2 } from "../../../model/protocol.ts";
import type { CertificateFiles, Interception, LocalServer } from "../../../model/proxy.ts";
import { extensionsAt } from "../../extensions/chain-extensions.ts";
import { withoutOverlaps } from "../overlaps.ts";
import { INBOUND_PORT } from "../reserved-ports.ts";
import { type ChainSettings, decodeOf, http1Options } from "../settings/chain-settings.ts";
import { type Families, listenerName, wildcards } from "../traits.ts";
import type { InboundPort } from "./inbound-ports.ts";
import type { MtlsModes } from "./mtls-mode.ts";

const PASSTHROUGH = "InboundPassthroughCluster";

/** All that decides the inbound listeners of a workload. Names no address unless a Sidecar binds one, so replicas share the result. */
export interface InboundParts {
  readonly families: Families;
  readonly interception: Interception;
  readonly ports: readonly InboundPort[];
  readonly modes: MtlsModes;
  readonly settings: ChainSettings;
  /** Who may call is decided on every chain, also on those of ports that no service declares. */
  readonly policies: PolicyFilters | undefined;
  readonly mesh: MeshConfig;
  readonly certificate: OwnCertificate;
}

/** What a workload shows in mutual TLS: the mesh's certificate, or files that stand in for it. */
export interface OwnCertificate {
  readonly files: CertificateFiles | undefined;
  /** An agent serves what is in files. */
  readonly agent: LocalServer;
}

/** The listener that all incoming connections are redirected to, and those a Sidecar wants on ports of their own. */
export function inboundListeners(parts: InboundParts): readonly ListenerInput[] {
  const own = parts.ports.filter(({ bindToPort }) => bindToPort).map((port) => ownListener(parts, port));
  return parts.interception === "NONE" ? own : [virtualInbound(parts), ...own];
}

function virtualInbound(parts: InboundParts): ListenerInput {
  const { mesh, settings, families } = parts;
  const port = mesh.proxyInboundListenPort || INBOUND_PORT;
  const redirected = parts.ports.filter((one) => !one.bindToPort && one.port !== port);
  const undeclared = parts.modes.ports.filter(({ port: number }) => !parts.ports.some((one) => one.port === number));
  const chains = withoutOverlaps([
    blackHole(port),
    ...inboundChains(passthrough(parts, undefined, parts.modes.mode)),
    ...undeclared.flatMap(({ port: number, mode }) => inboundChains(passthrough(parts, number, mode))),
    ...redirected.flatMap((one) => inboundChains(portInput(parts, one))),
  ]);
  return {
    name: "virtualInbound",
    bind: { addresses: wildcards(families), port },
    direction: "inbound",
    bindToPort: true,
    ...(parts.interception === "TPROXY" && { transparent: true }),
    filters: { originalDestination: true, ...(parts.interception === "TPROXY" && { originalSource: true }), ...inspectorsFor(chains) },
    inspectionTimeoutMs: settings.inspectionTimeoutMs,
    chains,
    accessLogs: settings.listenerAccessLogs,
  };
}

function ownListener(parts: InboundParts, port: InboundPort): ListenerInput {
  const chains = inboundChains(portInput(parts, port));
  const address = port.bind ?? wildcards(parts.families)[0] ?? "0.0.0.0";
  return {
    name: listenerName(address, port.port),
    bind: { addresses: [address], port: port.port },
    direction: "inbound",
    bindToPort: true,
    filters: inspectorsFor(chains),
    inspectionTimeoutMs: parts.settings.inspectionTimeoutMs,
    chains,
    accessLogs: parts.settings.listenerAccessLogs,
  };
}

/** A connection to the proxy's own port was redirected by nobody: forwarding it would send it here again. */
const blackHole = (port: number): FilterChainInput => ({
  name: "virtualInbound-blackhole",
  match: { destinationPort: port },
  content: { tcp: { statPrefix: "BlackHoleCluster", destinations: [{ cluster: "BlackHoleCluster", weight: 0 }], accessLogs: [] } },
});

/** Traffic to a port that no service declares goes to that port of the application. */
function passthrough(parts: InboundParts, port: number | undefined, mode: MtlsMode): InboundPortInput {
  return {
    port,
    kind: "auto",
    mode,
    names: { http: "virtualInbound-catchall-http", tcp: "virtualInbound" },
    http: manager(parts, port ?? 0, {
      statPrefix: `${PASSTHROUGH};`,
      routes: { inbound: { cluster: PASSTHROUGH, servicePort: 0, host: undefined, retryBeforeSend: true } },
      grpcWeb: false,
      http2: false,
    }),
    tcp: forward(parts, port ?? 0, PASSTHROUGH),
    plainHttp: parts.settings.plainHttp,
    ...networkExtensions(parts, port ?? 0),
    mtls: meshTls(parts),
  };
}

function portInput(parts: InboundParts, port: InboundPort): InboundPortInput {
  const cluster = `inbound|${port.port}||`;
  const name = listenerName(port.bind ?? wildcards(parts.families)[0] ?? "", port.port);
  const grpc = port.protocol === "GRPC" || port.protocol === "GRPC-WEB";
  return {
    port: port.port,
    kind: port.kind,
    mode: parts.modes.ports.find((one) => one.port === port.port)?.mode ?? parts.modes.mode,
    names: { http: name, tcp: name },
    http: manager(parts, port.port, {
      statPrefix: `inbound_${name};`,
      routes: { inbound: { cluster, servicePort: port.servicePort, host: port.host, retryBeforeSend: !grpc } },
      grpcWeb: port.protocol === "GRPC-WEB",
      http2: isHttp2(port.protocol),
    }),
    ...networkExtensions(parts, port.port),
    tcp: { ...forward(parts, port.port, cluster), ...decodeOf(port.protocol, parts.settings) },
    plainHttp: parts.settings.plainHttp,
    mtls: meshTls(parts),
    ...(port.tls !== undefined && { ownTls: port.tls }),
  };
}

type OwnParts = Pick<InboundParts, "settings" | "policies">;

type OwnManager = Pick<HttpManagerInput, "statPrefix" | "routes" | "grpcWeb" | "http2">;

function manager({ settings, policies }: OwnParts, port: number, own: OwnManager): HttpManagerInput {
  const { http: extensions } = extensionsAt(settings.extensions, port);
  return {
    ...settings.http,
    ...own,
    useRemoteAddress: false,
    trustedHops: 0,
    clientCert: settings.clientCert,
    server: settings.server,
    ...http1Options(settings),
    ...(policies !== undefined && { policies }),
    ...(extensions !== undefined && { extensions }),
  };
}

/** Network filters that stand before the connection manager of a chain that speaks HTTP. */
function networkExtensions({ settings }: OwnParts, port: number): Pick<InboundPortInput, "network"> {
  const { network } = extensionsAt(settings.extensions, port);
  return network === undefined ? {} : { network };
}

function forward({ settings, policies }: OwnParts, port: number, cluster: string): TcpProxyInput {
  const { network } = extensionsAt(settings.extensions, port);
  return {
    statPrefix: cluster,
    destinations: [{ cluster, weight: 0 }],
    accessLogs: settings.accessLogs,
    ...(settings.idleTimeoutMs !== undefined && { idleTimeoutMs: settings.idleTimeoutMs }),
    ...(policies !== undefined && { policies }),
    ...(network !== undefined && { extensions: network }),
  };
}

/** Mutual TLS with the workload's own certificate; clients must be of the mesh's trust domain or one of its aliases. */
function meshTls({ mesh, certificate }: Pick<InboundParts, "mesh" | "certificate">): DownstreamTlsInput {
  const wanted = mesh.meshMTLS;
  const names = ownNames(certificate.files, certificate.agent);
  return {
    certificates: [names.certificate],
    validation: {
      roots: names.roots,
      subjectAltNames: [mesh.trustDomain, ...mesh.trustDomainAliases].map((domain) => ({ prefix: `spiffe://${domain}/` })),
    },
    requireClientCertificate: true,
    alpn: ["h2", "http/1.1"],
    minVersion: wanted?.minProtocolVersion === MeshTls.TLSV1_3 ? "TLSv1_3" : "TLSv1_2",
    maxVersion: "TLSv1_3",
    cipherSuites: wanted !== undefined && wanted.cipherSuites.length > 0 ? wanted.cipherSuites : INBOUND_CIPHERS,
  };
}
