import { clone, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { MeshConfigSchema } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { MeshNetworksSchema } from "../../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import { placeOf } from "../checks/place.ts";
import { readMessage } from "../parse/read-message.ts";
import { formatPath, levelOf } from "../problem.ts";
import { defaultMeshConfig, withMeshDefaults } from "./defaults.ts";
import { extensionServiceFault } from "./validate-extension-provider.ts";
import { maxConnectionAgeFault, validateMeshConfig } from "./validate-mesh-config.ts";
import { validateMeshNetworks } from "./validate-networks.ts";
import { proxyAddressFault } from "./validate-proxy-config.ts";

/** `error path` or `warning path` for each fault. */
function judge(run: (report: Parameters<typeof placeOf>[0]) => void): readonly string[] {
  const found: string[] = [];
  run((code, path) => found.push(`${levelOf(code)} ${formatPath(path)}`));
  return found;
}

const judgeMesh = (json: JsonObject): readonly string[] =>
  judge((report) =>
    validateMeshConfig(withMeshDefaults({ message: readMessage(MeshConfigSchema, json, { report, path: [] }), json }), placeOf(report, [])),
  );

const proxy = (config: JsonObject): JsonObject => ({ defaultConfig: config });
const provider = (config: JsonObject): JsonObject => ({ extensionProviders: [{ name: "x", ...config }] });

describe("validateMeshConfig", () => {
  it("accepts the defaults, and finds what is missing without them", () => {
    expect(judgeMesh({})).toEqual([]);
    const bare = clone(MeshConfigSchema, defaultMeshConfig());
    bare.defaultConfig = undefined;
    bare.connectTimeout = undefined;
    expect(judge((report) => validateMeshConfig(bare, placeOf(report, [])))).toEqual(["error connectTimeout", "error defaultConfig"]);
  });

  const table: readonly [what: string, json: JsonObject, want: readonly string[]][] = [
    ["a port outside the range", { proxyListenPort: 70000 }, ["error proxyListenPort"]],
    ["a connect timeout of 2h", { connectTimeout: "2h" }, ["error connectTimeout"]],
    ["a connect timeout of 1h", { connectTimeout: "1h" }, []],
    ["a connect timeout in microseconds", { connectTimeout: "1500us" }, ["error connectTimeout"]],
    ["inbound ports that are none", { proxyInboundListenPort: -1 }, ["error proxyInboundListenPort"]],
    ["the usual inbound port", { proxyInboundListenPort: 0 }, []],
    ["detection in the past", { protocolDetectionTimeout: "-1s" }, ["error protocolDetectionTimeout"]],
    ["detection that waits for ever", { protocolDetectionTimeout: "0s" }, []],
    ["detection in nanoseconds", { protocolDetectionTimeout: "100ns" }, ["error protocolDetectionTimeout"]],
    ["bad trust domains", { trustDomain: "a/b", trustDomainAliases: ["ok", "z_z"] }, ["error trustDomain", "error trustDomainAliases[1]"]],
    ["a wildcard in the middle of a host", { serviceSettings: [{ hosts: ["*.ok", "a.*"] }] }, ["error serviceSettings[0].hosts[1]"]],
    [
      "conditions of selectors that never hold",
      {
        discoverySelectors: [
          { matchExpressions: [{ key: "a", operator: "Exists" }] },
          { matchExpressions: [{ key: "a", operator: "In" }, { operator: "Exists" }, { key: "b", operator: "Exists", values: ["c"] }] },
        ],
        serviceEntryVisibility: {
          policies: [{ matchingRules: [{ namespaceSelector: { matchExpressions: [{ key: "a", operator: "Has" }] } }] }],
        },
      },
      [
        "error discoverySelectors[1].matchExpressions[0]",
        "error discoverySelectors[1].matchExpressions[1]",
        "error discoverySelectors[1].matchExpressions[2]",
        "error serviceEntryVisibility.policies[0].matchingRules[0].namespaceSelector.matchExpressions[0]",
      ],
    ],
    ["curves inside the mesh", { meshMTLS: { ecdhCurves: ["P-256"] } }, ["error meshMTLS.ecdhCurves"]],
    [
      "an unknown and a double curve",
      { tlsDefaults: { ecdhCurves: ["P-256", "X", "P-256"] } },
      ["warning tlsDefaults.ecdhCurves[1]", "warning tlsDefaults.ecdhCurves[2]"],
    ],
    [
      "formats of logs that Envoy would refuse",
      {
        accessLogFormat: "%PROTOCOL% %SPEED%",
        extensionProviders: [
          { name: "text", envoyFileAccessLog: { path: "/log", logFormat: { text: "%" } } },
          {
            name: "fields",
            envoyFileAccessLog: { path: "/log", logFormat: { labels: { a: { b: ["%PROTOCOL%", "%SPEED%"] }, c: "%PROTOCOL%" } } },
          },
          { name: "otel", envoyOtelAls: { service: "a.example.com", port: 80, logFormat: { text: "%REQ%", labels: { d: "%REQ%" } } } },
        ],
      },
      [
        "warning accessLogFormat",
        "warning extensionProviders[3].envoyFileAccessLog.logFormat.text",
        "warning extensionProviders[4].envoyFileAccessLog.logFormat.labels.a.b[1]",
        "warning extensionProviders[5].envoyOtelAls.logFormat.text",
        "warning extensionProviders[5].envoyOtelAls.logFormat.labels.d",
      ],
    ],
    [
      "weights that are not 100",
      { localityLbSetting: { distribute: [{ from: "a", to: { b: 1 } }] } },
      ["error localityLbSetting.distribute[0].to"],
    ],
    ["a pool without settings", { defaultTrafficPolicy: { connectionPool: {} } }, ["error defaultTrafficPolicy.connectionPool"]],
    [
      "roots by a bundle elsewhere",
      { caCertificates: [{ pem: "x" }, { spiffeBundleUrl: "https://a.test" }] },
      ["warning caCertificates[1].spiffeBundleUrl"],
    ],
    ["an odd default retry", { defaultHttpRetryPolicy: { attempts: 1, retryOn: "never" } }, ["warning defaultHttpRetryPolicy.retryOn"]],
    ["a discovery address without port", proxy({ discoveryAddress: "istiod" }), ["error defaultConfig.discoveryAddress"]],
    ["an empty path", proxy({ configPath: "", binaryPath: "" }), ["error defaultConfig.configPath", "error defaultConfig.binaryPath"]],
    ["a drain in milliseconds", proxy({ drainDuration: "1500ms" }), ["error defaultConfig.drainDuration"]],
    [
      "ports of the proxy",
      proxy({ proxyAdminPort: -1, statusPort: 0 }),
      ["error defaultConfig.proxyAdminPort", "error defaultConfig.statusPort"],
    ],
    ["INHERIT", proxy({ controlPlaneAuthPolicy: "INHERIT" }), ["error defaultConfig.controlPlaneAuthPolicy"]],
    ["an empty cluster name", proxy({ serviceCluster: "" }), ["error defaultConfig.serviceCluster"]],
    ["zipkin on the node", proxy({ tracing: { zipkin: { address: "$(HOST_IP):9411" } } }), []],
    [
      "lightstep without token",
      proxy({ tracing: { lightstep: { address: "l:1" } } }),
      ["error defaultConfig.tracing.lightstep.accessToken"],
    ],
    ["a key provider without delay", proxy({ privateKeyProvider: { qat: {} } }), ["error defaultConfig.privateKeyProvider.qat.pollDelay"]],
    ["no key provider", proxy({ privateKeyProvider: {} }), ["error defaultConfig.privateKeyProvider"]],
    [
      "addresses of services",
      proxy({ statsdUdpAddress: "x", envoyAccessLogService: { address: "y" } }),
      ["error defaultConfig.statsdUdpAddress", "error defaultConfig.envoyAccessLogService.address"],
    ],
    [
      "a small HTTP/2 window",
      proxy({ connectionSettings: { http2InitialStreamWindowSize: 1 } }),
      ["error defaultConfig.connectionSettings.http2InitialStreamWindowSize"],
    ],
    [
      "a negative idle time",
      proxy({ connectionSettings: { httpIdleTimeout: "-1s" } }),
      ["error defaultConfig.connectionSettings.httpIdleTimeout"],
    ],
    [
      "old DNS allocation",
      proxy({ proxyMetadata: { ISTIO_META_DNS_AUTO_ALLOCATE: "true" } }),
      ["warning defaultConfig.proxyMetadata.ISTIO_META_DNS_AUTO_ALLOCATE"],
    ],
    ["a provider without kind", provider({}), ["warning extensionProviders[3]"]],
    ["a provider without service", provider({ skywalking: { port: 1 } }), ["warning extensionProviders[3].skywalking.service"]],
    [
      "statistics by no expression",
      proxy({ proxyStatsMatcher: { inclusionRegexps: [".*", "*x"] } }),
      ["warning defaultConfig.proxyStatsMatcher.inclusionRegexps[1]"],
    ],
    ["statistics for a name", proxy({ statsdUdpAddress: "statsd.test:8125" }), ["warning defaultConfig.statsdUdpAddress"]],
    ["statistics for an address", proxy({ statsdUdpAddress: "10.0.0.1:8125" }), []],
    [
      "a server header of two lines",
      proxy({ proxyHeaders: { server: { value: "a\nb" } } }),
      ["warning defaultConfig.proxyHeaders.server.value"],
    ],
    [
      "collectors that have less than no time",
      provider({ zipkin: { service: "a.b", port: 1, timeout: "-1s" } }),
      ["warning extensionProviders[3].zipkin.timeout"],
    ],
    [
      "authorizers that have less than no time",
      provider({ envoyExtAuthzGrpc: { service: "a.b", port: 1, timeout: "-1s" } }),
      ["warning extensionProviders[3].envoyExtAuthzGrpc.timeout"],
    ],
    [
      "the same over OTLP",
      provider({ opentelemetry: { service: "a.b", port: 1, http: { path: "/", timeout: "-1s" } } }),
      ["warning extensionProviders[3].opentelemetry.http.timeout"],
    ],
    [
      "spans over two protocols",
      provider({ opentelemetry: { service: "a.b", port: 1, grpc: {}, http: { path: "/" } } }),
      ["warning extensionProviders[3].opentelemetry.http"],
    ],
    [
      "an authorizer with odd status and path",
      provider({ envoyExtAuthzHttp: { service: "a.b", port: 1, statusOnError: "999", pathPrefix: "x" } }),
      ["warning extensionProviders[3].envoyExtAuthzHttp.statusOnError", "warning extensionProviders[3].envoyExtAuthzHttp.pathPrefix"],
    ],
    [
      "an answer that is no status",
      provider({ envoyExtAuthzGrpc: { service: "a.b", port: 1, statusOnError: "0" } }),
      ["warning extensionProviders[3].envoyExtAuthzGrpc.statusOnError"],
    ],
    [
      "an authorizer that is sent headers such as Envoy adds none",
      provider({ envoyExtAuthzHttp: { service: "a.b", port: 1, includeAdditionalHeadersInCheck: { host: "a", x: "%", "x-good": "y" } } }),
      [
        "warning extensionProviders[3].envoyExtAuthzHttp.includeAdditionalHeadersInCheck.host",
        "warning extensionProviders[3].envoyExtAuthzHttp.includeAdditionalHeadersInCheck.x",
      ],
    ],
    ["a good authorizer", provider({ envoyExtAuthzGrpc: { service: "ns/a.b", port: 1, statusOnError: "503" } }), []],
  ];
  for (const [what, json, want] of table)
    it(`${want.length === 0 ? "accepts" : "finds"} ${what}`, () => expect(judgeMesh(json)).toEqual(want));

  it("finds two providers of one name", () => {
    const mesh = defaultMeshConfig();
    mesh.extensionProviders = [...mesh.extensionProviders, ...defaultMeshConfig().extensionProviders.slice(0, 1)];
    expect(judge((report) => validateMeshConfig(mesh, placeOf(report, [])))).toEqual(["warning extensionProviders[3].name"]);
  });
});

describe("validateMeshNetworks", () => {
  const judgeNetwork = (network: JsonValue): readonly string[] =>
    judge((report) =>
      validateMeshNetworks(readMessage(MeshNetworksSchema, { networks: { a: network } }, { report, path: [] }), placeOf(report, [])),
    );
  it("accepts ranges, registries, names and addresses", () => {
    const endpoints = [{ fromCidr: "10.0.0.0/8" }, { fromRegistry: "east" }];
    expect(
      judgeNetwork({
        endpoints,
        gateways: [
          { address: "gw.example", port: 443 },
          { registryServiceName: "gw.istio-system.svc", port: 1 },
        ],
      }),
    ).toEqual([]);
  });
  it("finds what is none", () => {
    const endpoints = [{ fromCidr: "10.0.0.0/40" }];
    expect(judgeNetwork({ endpoints, gateways: [{ address: "a b", port: 0 }] })).toEqual([
      "error networks.a.endpoints[0].fromCidr",
      "error networks.a.gateways[0].address",
      "error networks.a.gateways[0].port",
    ]);
  });
});

describe("single values", () => {
  const table: readonly [what: string, fault: string | undefined, valid: boolean][] = [
    ["istiod.istio-system.svc:15012", proxyAddressFault("istiod.istio-system.svc:15012"), true],
    ["[::1]:80", proxyAddressFault("[::1]:80"), true],
    ["istiod:http", proxyAddressFault("istiod:http"), false],
    ["a..b:80", proxyAddressFault("a..b:80"), false],
    ["ns/host", extensionServiceFault("ns/host"), true],
    ["a/b/host", extensionServiceFault("a/b/host"), false],
    ["(empty)", extensionServiceFault(""), false],
    ["an age of 0", maxConnectionAgeFault(0), false],
    ["an age of 30m", maxConnectionAgeFault(1_800_000), true],
  ];
  for (const [what, fault, valid] of table) it(`${valid ? "accepts" : "refuses"} ${what}`, () => expect(fault === undefined).toBe(valid));
});
