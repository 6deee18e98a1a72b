import { isAddress, splitHostPort } from "../config/checks/address.ts";
import { portFault } from "../config/checks/port.ts";
import type { RemoteService, RemoteServices } from "../envoy/bootstrap/remote-services.ts";
import { fileCertificate, fileRoots, type UpstreamTlsInput } from "../envoy/tls/index.ts";
import type { ProxyConfig } from "../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import type { RemoteService as ConfiguredService } from "../gen/istio/mesh/v1alpha1/shared_pb.js";
import { type ClientTLSSettings, ClientTLSSettings_TLSmode as Mode } from "../gen/istio/networking/v1alpha3/destination_rule_pb.js";

/** What of a proxy's node metadata counts for these programs. */
export interface ServiceFacts {
  /** Address of the machine, which `$(HOST_IP)` stands for; empty where nobody said. */
  readonly hostIp: string;
  /** What the workload is called. */
  readonly serviceName: string;
  /** Files of the workload's own that stand in for those of ProxyConfig. */
  readonly files: { readonly certificate: string; readonly key: string; readonly roots: string };
}

/** The programs that a ProxyConfig has Envoy report to. One whose address cannot be read is left out. */
export function remoteServicesOf(config: ProxyConfig | undefined, facts: ServiceFacts): RemoteServices {
  const tracer = tracerOf(config, facts);
  const metricsService = serviceOf(config?.envoyMetricsService, "envoy_metrics_service", facts);
  const accessLogService = serviceOf(config?.envoyAccessLogService, "envoy_accesslog_service", facts);
  const statsd = placeOf(config?.statsdUdpAddress ?? "", facts);
  return {
    ...(tracer !== undefined && { tracer }),
    ...(metricsService !== undefined && { metricsService }),
    ...(accessLogService !== undefined && { accessLogService }),
    // Envoy looks no names up for it, and does not start with one.
    ...(statsd !== undefined && isAddress(statsd.host) && { statsd }),
  };
}

function tracerOf(config: ProxyConfig | undefined, facts: ServiceFacts): RemoteServices["tracer"] {
  const tracing = config?.tracing;
  const kind = tracing?.tracer.case;
  if (tracing === undefined || (kind !== "zipkin" && kind !== "datadog")) return undefined;
  const place = placeOf(tracing.tracer.value.address, facts);
  const tls = { ...facts, alpn: { mesh: [], others: [] }, sni: "tracer" };
  return place && { ...place, kind, serviceName: facts.serviceName, ...tlsOf(tracing.tlsSettings, tls) };
}

const GRPC_ALPN = { mesh: ["istio", "h2"], others: ["h2"] } as const;

/** `sni` is the name that a program of the mesh is called by where none is given; nobody looks at it. */
function serviceOf(service: ConfiguredService | undefined, sni: string, facts: ServiceFacts): RemoteService | undefined {
  const place = placeOf(service?.address ?? "", facts);
  const keepalive = keepaliveOf(service);
  return (
    place && {
      ...place,
      ...(keepalive !== undefined && { keepalive }),
      ...tlsOf(service?.tlsSettings, { ...facts, alpn: GRPC_ALPN, sni }),
    }
  );
}

function keepaliveOf(service: ConfiguredService | undefined): RemoteService["keepalive"] {
  const given = service?.tcpKeepalive;
  if (given === undefined) return undefined;
  const [time, interval] = [given.time, given.interval].map((duration) => (duration === undefined ? 0 : Number(duration.seconds)));
  return {
    ...(given.probes > 0 && { keepaliveProbes: given.probes }),
    ...(time !== undefined && time > 0 && { keepaliveTime: time }),
    ...(interval !== undefined && interval > 0 && { keepaliveInterval: interval }),
  };
}

function placeOf(address: string, { hostIp }: ServiceFacts): RemoteService | undefined {
  const { host: given = "", port = "" } = splitHostPort(address) ?? {};
  const host = given === HOST_IP && hostIp !== "" ? hostIp : given;
  return /^\S+$/.test(host) && /^\d+$/.test(port) && portFault(Number(port)) === undefined ? { host, port: Number(port) } : undefined;
}

/** Stands in addresses for that of the machine a pod is on. */
export const HOST_IP = "$(HOST_IP)";

interface TlsFacts extends Pick<ServiceFacts, "files"> {
  readonly alpn: { readonly mesh: readonly string[]; readonly others: readonly string[] };
  readonly sni: string;
}

/** Files are served by the agent beside the proxy; the workload's own certificate is what ISTIO_MUTUAL means. */
function tlsOf(settings: ClientTLSSettings | undefined, { files, alpn, sni }: TlsFacts): { readonly tls?: UpstreamTlsInput } {
  if (settings === undefined || settings.mode === Mode.DISABLE) return {};
  const own = settings.mode === Mode.ISTIO_MUTUAL;
  const rootsFile = files.roots || settings.caCertificates;
  const roots = own ? "ROOTCA" : rootsFile === "" ? undefined : fileRoots(rootsFile, true);
  const certificate = own
    ? "default"
    : settings.mode === Mode.MUTUAL
      ? fileCertificate(files.certificate || settings.clientCertificate, files.key || settings.privateKey, true)
      : undefined;
  const name = settings.sni || (own ? sni : "");
  return {
    tls: {
      alpn: own ? alpn.mesh : alpn.others,
      ...(certificate !== undefined && { certificate }),
      ...(roots !== undefined && { validation: { roots, subjectAltNames: settings.subjectAltNames.map((exact) => ({ exact })) } }),
      ...(name !== "" && { sni: name }),
    },
  };
}
