import { isAddress, splitHostPort } from "../config/checks/address.ts";
import { portFault } from "../config/checks/port.ts";
import type { RemoteService, RemoteServices } from "../envoy/bootstrap/remote-services.ts";
import { fileCertificate, fileRoots, type UpstreamTlsInput } from "../envoy/tls/index.ts";
import type { ProxyConfig } from "../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import type { RemoteService as ConfiguredService } from "../gen/istio/mesh/v1alpha1/shared_pb.js";
import { type ClientTLSSettings, ClientTLSSettings_TLSmode as Mode } from "../gen/istio/networking/v1alpha3/destination_rule_pb.js";

/** The programs that a ProxyConfig has Envoy report to. One whose address cannot be read is left out. */
export function remoteServicesOf(config: ProxyConfig | undefined): RemoteServices {
  const tracer = tracerOf(config);
  const metricsService = serviceOf(config?.envoyMetricsService);
  const accessLogService = serviceOf(config?.envoyAccessLogService);
  const statsd = placeOf(config?.statsdUdpAddress ?? "");
  return {
    ...(tracer !== undefined && { tracer }),
    ...(metricsService !== undefined && { metricsService }),
    ...(accessLogService !== undefined && { accessLogService }),
    // Envoy looks no names up for it, and does not start with one.
    ...(statsd !== undefined && isAddress(statsd.host) && { statsd }),
  };
}

function tracerOf(config: ProxyConfig | undefined): RemoteServices["tracer"] {
  const tracing = config?.tracing;
  const kind = tracing?.tracer.case;
  if (tracing === undefined || (kind !== "zipkin" && kind !== "datadog")) return undefined;
  const place = placeOf(tracing.tracer.value.address);
  const serviceName = config?.clusterName.case === "serviceCluster" ? config.clusterName.value : "istio-proxy";
  return place && { ...place, kind, serviceName, ...tlsOf(tracing.tlsSettings, []) };
}

function serviceOf(service: ConfiguredService | undefined): RemoteService | undefined {
  const place = placeOf(service?.address ?? "");
  return place && { ...place, ...tlsOf(service?.tlsSettings, ["h2"]) };
}

function placeOf(address: string): RemoteService | undefined {
  const { host = "", port = "" } = splitHostPort(address) ?? {};
  return /^\S+$/.test(host) && /^\d+$/.test(port) && portFault(Number(port)) === undefined ? { host, port: Number(port) } : undefined;
}

/** Files are served by the agent beside the proxy; the workload's own certificate is what ISTIO_MUTUAL means. */
function tlsOf(settings: ClientTLSSettings | undefined, alpn: readonly string[]): { readonly tls?: UpstreamTlsInput } {
  if (settings === undefined || settings.mode === Mode.DISABLE) return {};
  const own = settings.mode === Mode.ISTIO_MUTUAL;
  const roots = own ? "ROOTCA" : settings.caCertificates === "" ? undefined : fileRoots(settings.caCertificates, true);
  const certificate = own
    ? "default"
    : settings.mode === Mode.MUTUAL
      ? fileCertificate(settings.clientCertificate, settings.privateKey, true)
      : undefined;
  return {
    tls: {
      alpn,
      ...(certificate !== undefined && { certificate }),
      ...(roots !== undefined && { validation: { roots, subjectAltNames: settings.subjectAltNames.map((exact) => ({ exact })) } }),
      ...(settings.sni !== "" && { sni: settings.sni }),
    },
  };
}
