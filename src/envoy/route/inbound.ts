import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type RouteConfiguration, RouteConfigurationSchema } from "../../gen/envoy/config/route/v3/route_pb.js";

/** All that may influence the route configuration that an inbound HTTP filter chain carries inside itself. */
export interface InboundRouteInput {
  /** Cluster of the application's port, e.g. `inbound|8080||`; also the name of the configuration. */
  readonly cluster: string;
  /** Port of the service, as clients know it; 0 for traffic to ports no service declares. */
  readonly servicePort: number;
  /** Host of the service, to name spans after; undefined for traffic to ports no service declares. */
  readonly host: string | undefined;
  /**
   * Try again where the connection to the application was closed before the request went out: an application that closes idle
   * connections would otherwise fail requests. Not for gRPC, whose clients do it themselves.
   */
  readonly retryBeforeSend: boolean;
}

/** One virtual host, one route, to the application. Timeouts are the client's business: none is set here, as in Istio. */
export function buildInboundRoute(input: InboundRouteInput): RouteConfiguration {
  const none = durationFromMs(0);
  return create(RouteConfigurationSchema, {
    name: input.cluster,
    validateClusters: false,
    virtualHosts: [
      {
        name: `inbound|http|${input.servicePort}`,
        domains: ["*"],
        routes: [
          {
            name: "default",
            match: { pathSpecifier: { case: "prefix", value: "/" } },
            ...(input.host !== undefined && { decorator: { operation: `${input.host}:${input.servicePort}/*` } }),
            action: {
              case: "route",
              value: {
                clusterSpecifier: { case: "cluster", value: input.cluster },
                timeout: none,
                maxStreamDuration: { maxStreamDuration: none, grpcTimeoutHeaderMax: none },
                ...(input.retryBeforeSend && { retryPolicy: { retryOn: "reset-before-request", numRetries: 2 } }),
              },
            },
          },
        ],
      },
    ],
  });
}
