import type { ConfigObject } from "../../../config/object.ts";
import type { Query } from "../../../engine/index.ts";
import type { InboundKind } from "../../../envoy/listener/inbound-chains.ts";
import type { DownstreamTlsInput } from "../../../envoy/tls/index.ts";
import { CaptureMode, type Sidecar } from "../../../gen/istio/networking/v1alpha3/sidecar_pb.js";
import { isHttp, type Protocol, parseProtocol } from "../../../model/protocol.ts";
import type { ProxyView } from "../../../model/proxy.ts";
import type { GenerateContext } from "../../context.ts";
import { serverTls } from "../server-tls.ts";

/** A port of a workload that takes traffic, by a service or by its Sidecar. */
export interface InboundPort {
  /** Port the application listens on. */
  readonly port: number;
  readonly servicePort: number;
  /** Host of the service; undefined for ports a Sidecar declares. */
  readonly host: string | undefined;
  /** Key of the object the service was made from. */
  readonly object: string | undefined;
  readonly protocol: Protocol;
  readonly kind: InboundKind;
  /** Address of the listener, where a Sidecar names one or the port gets a listener of its own. */
  readonly bind: string | undefined;
  readonly bindToPort: boolean;
  /** TLS that a Sidecar ends for the application. */
  readonly tls: DownstreamTlsInput | undefined;
}

export type PortsQuery = Pick<
  ProxyView,
  "namespace" | "sidecar" | "interception" | "addresses" | "remoteCluster" | "pod" | "claim" | "hasIdentity"
>;

/** Ports of the workload at an address. What a Sidecar declares takes the place of what services say. */
export function defineInboundPorts(
  ctx: Pick<GenerateContext, "engine" | "inputs" | "registry" | "settings">,
): Query<PortsQuery, readonly InboundPort[]> {
  return ctx.engine.query<PortsQuery, readonly InboundPort[]>({
    name: "inboundPorts",
    id: ({ namespace, sidecar, interception, hasIdentity, addresses, remoteCluster, pod, claim }) =>
      [namespace, sidecar ?? "", interception, hasIdentity, remoteCluster, pod, claim, ...addresses].join("|"),
    compute: (query) => {
      const sidecar =
        query.sidecar === undefined ? undefined : (ctx.inputs.objects.get(query.sidecar) as ConfigObject<Sidecar> | undefined)?.spec;
      if (sidecar !== undefined && sidecar.ingress.length > 0) return declaredPorts(ctx, sidecar, query);
      // Without redirection the application has its ports to itself: a listener there would take them from it.
      return query.interception === "NONE" ? [] : servedPorts(ctx, query);
    },
  });
}

/** One entry per port of the workload: where two services share one, the older decides. */
function servedPorts(ctx: Pick<GenerateContext, "registry" | "settings">, query: PortsQuery): readonly InboundPort[] {
  const found = query.addresses
    .flatMap((address) => ctx.registry.instancesAt(address, query.namespace, { ...query, cluster: query.remoteCluster }))
    .flatMap(({ service: ref, servicePort, endpoint }) => {
      const service = ctx.registry.service(ref);
      const protocol = service?.ports.find(({ number }) => number === servicePort.number)?.protocol;
      return service === undefined || protocol === undefined || protocol === "UDP" || endpoint.unixPath
        ? []
        : [{ service, servicePort, endpoint, protocol }];
    })
    .sort(
      (a, b) =>
        a.endpoint.port - b.endpoint.port ||
        a.service.createdAt - b.service.createdAt ||
        (a.service.host < b.service.host ? -1 : a.service.host > b.service.host ? 1 : a.servicePort.number - b.servicePort.number),
    );
  return found
    .filter(({ endpoint }, index) => endpoint.port !== found[index - 1]?.endpoint.port)
    .map(({ service, servicePort, endpoint, protocol }) => ({
      port: endpoint.port,
      servicePort: servicePort.number,
      host: service.host,
      object: service.objectKey,
      protocol,
      kind: kindOf(protocol, ctx.settings.sniffInbound),
      bind: undefined,
      bindToPort: false,
      tls: undefined,
    }));
}

function declaredPorts(
  { inputs, settings }: Pick<GenerateContext, "inputs" | "settings">,
  sidecar: Sidecar,
  query: PortsQuery,
): readonly InboundPort[] {
  return sidecar.ingress.flatMap(({ port, bind, captureMode, tls: wanted }) => {
    if (port === undefined) return [];
    const tls = settings.tlsOnSidecarIngress ? wanted : undefined;
    const declared = parseProtocol(port.protocol) ?? "Auto";
    const protocol = tls === undefined ? declared : withinTls(declared);
    const bindToPort = captureMode === CaptureMode.NONE || (captureMode === CaptureMode.DEFAULT && query.interception === "NONE");
    return [
      {
        port: port.number,
        servicePort: port.number,
        host: undefined,
        object: undefined,
        protocol,
        kind: kindOf(protocol, settings.sniffInbound),
        bind: bind || (bindToPort ? (query.addresses[0] ?? "127.0.0.1") : undefined),
        bindToPort,
        tls:
          tls === undefined
            ? undefined
            : serverTls(tls, { mesh: inputs.mesh.get("mesh"), agent: query.hasIdentity, files: undefined, holder: { socket: false } }),
      },
    ];
  });
}

/** What is left of a protocol once its TLS is ended. */
const withinTls = (protocol: Protocol): Protocol => (protocol === "HTTPS" ? "HTTP" : protocol === "TLS" ? "TCP" : protocol);

const kindOf = (protocol: Protocol, sniff: boolean): InboundKind =>
  isHttp(protocol) ? "http" : protocol === "Auto" && sniff ? "auto" : "tcp";
