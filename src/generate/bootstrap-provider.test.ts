import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { meshFrom } from "../../test/support/mesh-from.ts";
import { type Bootstrap, BootstrapSchema } from "../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { Cluster_DnsLookupFamily } from "../gen/envoy/config/cluster/v3/cluster_pb.js";
import { DatadogConfigSchema } from "../gen/envoy/config/trace/v3/datadog_pb.js";
import { UpstreamTlsContextSchema } from "../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js";
import type { ResourceSet } from "../wire/encoded.ts";
import { BOOTSTRAP_TYPE } from "../wire/type-urls.ts";
import { builtInBootstrap } from "./bootstrap-built-in.ts";

const header = (defaultConfig: string): string => `
mesh: {defaultConfig: ${defaultConfig}}
proxies:
- {name: a, namespace: shop, address: 10.0.0.1}
- {name: b, namespace: shop, address: 10.0.0.1, OWNER: somebody}
- {name: c, namespace: shop, address: 10.0.0.1, ADMIN_PORT: 16000}
- {name: d, namespace: shop, address: 10.0.0.1, PROXY_CONFIG: {extraStatTags: [own]}}
`;

/** What each proxy of a mesh is offered. */
function offers(yaml: string): readonly ResourceSet[] {
  const mesh = meshFrom(yaml);
  const provider = mesh.world.providers.find(({ typeUrl }) => typeUrl === BOOTSTRAP_TYPE);
  if (provider === undefined) throw new Error("no provider");
  const all = { wildcard: true, names: { id: 0, names: new Set<string>() } };
  return mesh.proxies.map(({ view }) => provider.offered(view, all));
}

function bootstrapIn(set: ResourceSet | undefined): Bootstrap {
  const [resource] = set?.resources.values() ?? [];
  return fromBinary(BootstrapSchema, resource?.body ?? new Uint8Array());
}

const tagsOf = (set: ResourceSet | undefined): readonly string[] =>
  bootstrapIn(set).statsConfig?.statsTags.map(({ tagName }) => tagName) ?? [];

it("a bootstrap has a time between two flushes that Envoy takes, whatever a pod asks for", () => {
  const flushOf = (asked: string): unknown => {
    const annotations = { "sidecar.istio.io/statsFlushInterval": asked, "sidecar.istio.io/statsEvictionInterval": "1m" };
    const { statsFlushInterval, statsEvictionInterval } = fromBinary(BootstrapSchema, builtInBootstrap({ ANNOTATIONS: annotations }));
    return [statsFlushInterval?.seconds, statsEvictionInterval?.seconds];
  };
  expect(["10s", "0s", "-1s", "1ns", "5m", "x"].map(flushOf)).toEqual([[10n, 60n], ...Array.from({ length: 5 }, () => [undefined, 60n])]);
});

describe("bootstraps over xDS", () => {
  it("are shared by proxies that agree on what they are made from", () => {
    const [a, b, c] = offers(header("{}"));
    expect(a).toBe(b);
    expect(c).not.toBe(a);
  });

  it("follow the mesh's ProxyConfig, unless the proxy has one of its own", () => {
    const [a, , , d] = offers(header("{extraStatTags: [team], connectionSettings: {globalDownstreamConnectionLimit: 7}}"));
    expect(tagsOf(a)).toContain("team");
    expect(tagsOf(d)).toContain("own");
    expect(tagsOf(d)).not.toContain("team");
  });

  it("tell the agent how Envoy is to be run, where that is not as usual", () => {
    const [a, , , d] = offers(header("{concurrency: 2, drainDuration: 20s, terminationDrainDuration: 5s}"));
    expect(bootstrapIn(a).node?.metadata).toEqual({ RUN_PROXY_CONFIG: '{"concurrency":2,"drainDuration":"20000ms"}' });
    expect(bootstrapIn(d).node).toBeUndefined();
  });

  it("leave to the agent what only the agent knows", () => {
    const bootstrap = bootstrapIn(offers(header("{}"))[0]);
    expect(bootstrap.node).toBeUndefined();
    expect(bootstrap.admin?.address).toBeUndefined();
    expect(bootstrap.staticResources?.clusters.map(({ name }) => name)).toEqual(["prometheus_stats", "agent"]);
  });

  it("look up names of the family that the workload has, and listen on both where it is to have both", () => {
    const config = "PROXY_CONFIG: {tracing: {zipkin: {address: 'zipkin.test:9411'}}}, ENVOY_STATUS_PORT: '15021'";
    const shapes = (INSTANCE_IPS: string, more = ""): unknown => {
      const bootstrap = bootstrapIn(
        offers(`proxies: [{name: a, address: 10.0.0.1, ${config}, INSTANCE_IPS: "${INSTANCE_IPS}"${more}}]\n`)[0],
      );
      const { clusters = [], listeners = [] } = bootstrap.staticResources ?? {};
      const placeOf = (address: { readonly address: { readonly value?: unknown } } | undefined): unknown =>
        Object(address?.address.value).address;
      return [
        clusters.find(({ name }) => name === "zipkin")?.dnsLookupFamily,
        listeners.map(({ address, additionalAddresses }) =>
          [address, ...additionalAddresses.map((one) => one.address)].map(placeOf).join(),
        ),
      ];
    };
    const { V4_ONLY, V6_ONLY, ALL } = Cluster_DnsLookupFamily;
    expect(shapes("10.0.0.1")).toEqual([V4_ONLY, ["0.0.0.0"]]);
    expect(shapes("fd00::1")).toEqual([V6_ONLY, ["::"]]);
    expect(shapes("fd00::1,10.0.0.1")).toEqual([V4_ONLY, ["0.0.0.0"]]);
    expect(shapes("fd00::1,10.0.0.1", ", DUAL_STACK: 'true'")).toEqual([ALL, ["::,0.0.0.0"]]);
    expect(shapes("10.0.0.1,fd00::1", ", DUAL_STACK: 'true'")).toEqual([ALL, ["0.0.0.0,::"]]);
  });

  it("lead to the machine where a program of it is meant, and are shared by machines where none is", () => {
    const [a, b] = [1, 2].map(
      (host) => `{name: a${host}, address: 10.0.0.1, HOST_IP: 10.9.9.${host}, WORKLOAD_NAME: web, NAMESPACE: shop}`,
    );
    const of = (tracing: string) => offers(`mesh: {defaultConfig: {tracing: ${tracing}}}\nproxies: [${a}, ${b}]\n`);
    const [first, second] = of("{datadog: {address: '$(HOST_IP):8126'}}");
    const host = (set: ResourceSet | undefined): unknown =>
      bootstrapIn(set).staticResources?.clusters.find(({ name }) => name === "datadog_agent")?.loadAssignment?.endpoints[0]?.lbEndpoints[0]
        ?.hostIdentifier.value;
    expect(host(first)).toMatchObject({ address: { address: { value: { address: "10.9.9.1" } } } });
    expect(host(second)).toMatchObject({ address: { address: { value: { address: "10.9.9.2" } } } });
    const config = bootstrapIn(first).tracing?.http?.configType.value;
    expect(config && anyUnpack(config, DatadogConfigSchema)?.serviceName).toBe("web.shop");
    const [one, other] = of("{zipkin: {address: 'zipkin:9411'}}");
    expect(one).toBe(other);
  });

  it("call programs of the mesh as the mesh does, and watch over silent connections", () => {
    const service = (settings: string) => {
      const [set] = offers(header(`{envoyMetricsService: {address: "metrics:1", ${settings}}}`));
      const cluster = bootstrapIn(set).staticResources?.clusters.find(({ name }) => name === "envoy_metrics_service");
      const socket = cluster?.transportSocket?.configType.value;
      const tls = socket && anyUnpack(socket, UpstreamTlsContextSchema);
      return { sni: tls?.sni, alpn: tls?.commonTlsContext?.alpnProtocols, keepalive: cluster?.upstreamConnectionOptions?.tcpKeepalive };
    };
    expect(service("tlsSettings: {mode: ISTIO_MUTUAL}")).toEqual({
      sni: "envoy_metrics_service",
      alpn: ["istio", "h2"],
      keepalive: undefined,
    });
    expect(service("tlsSettings: {mode: SIMPLE}")).toMatchObject({ sni: "", alpn: ["h2"] });
    expect(service("tcpKeepalive: {probes: 3, time: 10s, interval: 0s}").keepalive).toMatchObject({
      keepaliveProbes: 3,
      keepaliveTime: 10,
    });
  });

  it("keep Envoy's metrics on the machine, take the PROXY protocol and know their own kind where that is asked for", () => {
    const extra =
      "ENVOY_STATUS_PORT: '15021', ENVOY_PROMETHEUS_PORT: '15090', STATUS_PORT_PROXY_PROTOCOL: 'true', ENABLE_SELF_DISCOVERY: 'true'";
    const [set] = offers(
      `mesh: {defaultConfig: {proxyMetadata: {METRICS_LOCALHOST_ACCESS_ONLY: "true"}}}\nproxies: [{name: a, address: 10.0.0.1, ${extra}}]\n`,
    );
    const { staticResources, clusterManager } = bootstrapIn(set);
    expect(staticResources?.listeners.map(({ name, listenerFilters }) => [name, listenerFilters.length])).toEqual([
      ["127.0.0.1_15090", 0],
      ["0.0.0.0_15021", 1],
    ]);
    expect(clusterManager?.localClusterName).toBe("local_cluster");
    expect(staticResources?.clusters.map(({ name }) => name)).toContain("local_cluster");
  });

  it("tell of loads whom the workload names, and nobody where it names none", () => {
    const loads = (json: string) => {
      const [set] = offers(`proxies: [{name: a, address: 10.0.0.1, LOAD_STATS_CONFIG_JSON: '${json}'}]\n`);
      return bootstrapIn(set).clusterManager?.loadStatsConfig?.grpcServices.length;
    };
    expect(loads('{"api_type": "GRPC", "grpc_services": [{"envoy_grpc": {"cluster_name": "xds-grpc"}}]}')).toBe(1);
    expect(loads('{"api_type": "GRPC"}')).toBeUndefined();
    expect(loads("{")).toBeUndefined();
  });

  it("are without what Envoy would not start with", () => {
    const sinks = (address: string): readonly string[] =>
      bootstrapIn(offers(header(`{statsdUdpAddress: "${address}"}`))[0]).statsSinks.map(({ name }) => name);
    expect(sinks("10.0.0.9:8125")).toEqual(["envoy.stat_sinks.statsd"]);
    expect(sinks("statsd.test:8125")).toEqual([]);
    const [odd] = offers(
      "proxies: [{name: a, namespace: shop, address: 10.0.0.1, PROXY_CONFIG: {proxyAdminPort: -1, statusPort: 99999, statsdUdpAddress: '::1'}}]\n",
    );
    const [plain] = offers("proxies: [{name: a, namespace: shop, address: 10.0.0.1}]\n");
    expect(bootstrapIn(odd)).toEqual(bootstrapIn(plain));
    const [stats] = offers(
      "proxies: [{name: a, namespace: shop, address: 10.0.0.1, PROXY_CONFIG: {proxyStatsMatcher: {inclusionPrefixes: [''], inclusionRegexps: ['*x']}}}]\n",
    );
    expect(bootstrapIn(stats)).toEqual(bootstrapIn(plain));
    const [bracket] = offers("proxies: [{name: a, namespace: shop, address: 10.0.0.1, PROXY_CONFIG: {extraStatTags: ['a[']}}]\n");
    expect(bootstrapIn(bracket).statsConfig?.statsTags.find(({ tagName }) => tagName === "a[")?.tagValue.value).toBe(
      "(a\\[=\\.=(.*?);\\.;)",
    );
  });
});
