import { describe, expect, it } from "vitest";
import { Cluster_DiscoveryType } from "../../gen/envoy/config/cluster/v3/cluster_pb.js";
import { NO_LOCALITY } from "../../model/locality.ts";
import { type BootstrapInput, buildBootstrap } from "./bootstrap.ts";

const INPUT: BootstrapInput = {
  nodeId: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local",
  nodeCluster: "web.shop",
  locality: NO_LOCALITY,
  metadata: {},
  discovery: { host: "127.0.0.1", port: 15010, protocol: "delta", tls: undefined },
  adminPort: 15000,
  readinessPort: 0,
  prometheusPort: 0,
  sdsSocket: undefined,
};

/** The one endpoint of the cluster that stands for the control plane, and how it is found. */
function discovery(host: string) {
  const { staticResources } = buildBootstrap({ ...INPUT, discovery: { ...INPUT.discovery, host } });
  const cluster = staticResources?.clusters.find(({ name }) => name === "xds-grpc");
  const { hostIdentifier } = cluster?.loadAssignment?.endpoints[0]?.lbEndpoints[0] ?? {};
  return {
    type: cluster?.clusterDiscoveryType.value,
    address: hostIdentifier?.case === "endpoint" ? hostIdentifier.value.address?.address : undefined,
  };
}

describe("where a proxy finds its control plane", () => {
  it.for([
    ["an address", "10.0.0.9", Cluster_DiscoveryType.STATIC, { case: "socketAddress", value: { address: "10.0.0.9" } }],
    ["a name", "istiod.example.com", Cluster_DiscoveryType.STRICT_DNS, { case: "socketAddress", value: { address: "istiod.example.com" } }],
    ["a socket", "unix:/run/istio/XDS", Cluster_DiscoveryType.STATIC, { case: "pipe", value: { path: "/run/istio/XDS" } }],
  ] as const)("%s", ([, host, type, address]) => {
    expect(discovery(host)).toMatchObject({ type, address });
  });

  it("over TLS with a token that is read from its file at each call, by the client that can", () => {
    const tls = { rootCertFile: "/r.pem", serverName: "istiod.istio-system.svc", tokenFile: "/token" };
    const { staticResources, dynamicResources } = buildBootstrap({ ...INPUT, discovery: { ...INPUT.discovery, host: "fd00::1", tls } });
    expect(staticResources?.clusters).toEqual([]);
    const target = dynamicResources?.adsConfig?.grpcServices[0]?.targetSpecifier;
    expect(target).toMatchObject({ case: "googleGrpc", value: { targetUri: "[fd00::1]:15010", statPrefix: "xds-grpc" } });
  });
});
