import type { JsonObject, MessageInitShape } from "@bufbuild/protobuf";
import { durationOfMs } from "../../base/duration.ts";
import type { ClusterSchema } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import type { BindConfigSchema } from "../../gen/envoy/config/core/v3/address_pb.js";
import type { ClusterInput, ClusterMetadataInput } from "./cluster-input.ts";
import { discoveryFields } from "./discovery.ts";
import { httpProtocolOptions } from "./http-protocol.ts";
import { circuitBreakers } from "./limits.ts";
import { loadBalancerFields } from "./load-balancer.ts";
import { outlierDetection } from "./outlier-detection.ts";
import { transportFields } from "./transport.ts";

/** Builds one cluster of any kind. Pure: equal inputs give equal bytes. */
export function buildCluster(input: ClusterInput): MessageInitShape<typeof ClusterSchema> {
  return {
    name: input.name,
    ...(input.statName !== undefined && { altStatName: input.statName }),
    connectTimeout: durationOfMs(input.connectTimeoutMs),
    ...discoveryFields(input),
    ...loadBalancerFields(input.loadBalancer),
    ...(input.upstreamPort !== undefined && {
      lbConfig: { case: "originalDstLbConfig" as const, value: { upstreamPortOverride: input.upstreamPort } },
    }),
    ...transportFields(input.transport),
    ...(input.limits !== undefined && { circuitBreakers: circuitBreakers(input.limits) }),
    ...(input.outlier !== undefined && { outlierDetection: outlierDetection(input.outlier) }),
    ...(input.http !== undefined && { typedExtensionProtocolOptions: httpProtocolOptions(input.http) }),
    ...(input.keepalive !== undefined && {
      upstreamConnectionOptions: {
        tcpKeepalive: {
          keepaliveProbes: input.keepalive.probes,
          keepaliveTime: input.keepalive.timeSeconds,
          keepaliveInterval: input.keepalive.intervalSeconds,
        },
      },
    }),
    ...(input.bind.length > 0 && { upstreamBindConfig: bindConfig(input.bind) }),
    ...(input.metadata !== undefined && metadataField(input.metadata)),
  };
}

function bindConfig([first = "", ...others]: readonly string[]): MessageInitShape<typeof BindConfigSchema> {
  const source = (address: string) => ({ address, portSpecifier: { case: "portValue", value: 0 } as const });
  return { sourceAddress: source(first), extraSourceAddresses: others.map((address) => ({ address: source(address) })) };
}

function metadataField({
  config,
  subset,
  services,
  external,
}: ClusterMetadataInput): Pick<MessageInitShape<typeof ClusterSchema>, "metadata"> {
  const istio: JsonObject = {
    ...(config !== undefined && { config }),
    ...(external && { external }),
    ...(services.length > 0 && { services: services.map(({ host, name, namespace }) => ({ host, name, namespace })) }),
    ...(subset !== undefined && { subset }),
  };
  return Object.keys(istio).length === 0 ? {} : { metadata: { filterMetadata: { istio } } };
}
