import { fromJson, type JsonObject, toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { MeshConfigSchema } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { ProxyConfigSchema } from "../../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import { defaultMeshConfig, withMeshDefaults, withProxyDefaults } from "./defaults.ts";

const over = (json: JsonObject) => toJson(MeshConfigSchema, withMeshDefaults({ message: fromJson(MeshConfigSchema, json), json }));

describe("defaultMeshConfig", () => {
  it("is Istio's, field by field", () => {
    expect(toJson(MeshConfigSchema, defaultMeshConfig())).toEqual({
      proxyListenPort: 15001,
      proxyInboundListenPort: 15006,
      connectTimeout: "10s",
      protocolDetectionTimeout: "0s",
      dnsRefreshRate: "60s",
      trustDomain: "cluster.local",
      rootNamespace: "istio-system",
      enableAutoMtls: true,
      enableTracing: true,
      enablePrometheusMerge: true,
      ingressClass: "istio",
      ingressService: "istio-ingressgateway",
      ingressControllerMode: "STRICT",
      outboundTrafficPolicy: { mode: "ALLOW_ANY" },
      inboundTrafficPolicy: {},
      localityLbSetting: { enabled: true },
      defaultServiceExportTo: ["*"],
      defaultVirtualServiceExportTo: ["*"],
      defaultDestinationRuleExportTo: ["*"],
      defaultProviders: {},
      extensionProviders: [
        { name: "prometheus", prometheus: {} },
        { name: "stackdriver", stackdriver: {} },
        { name: "envoy", envoyFileAccessLog: { path: "/dev/stdout" } },
      ],
      defaultConfig: {
        configPath: "./etc/istio/proxy",
        binaryPath: "/usr/local/bin/envoy",
        serviceCluster: "istio-proxy",
        drainDuration: "45s",
        terminationDrainDuration: "5s",
        discoveryAddress: "istiod.istio-system.svc:15012",
        controlPlaneAuthPolicy: "MUTUAL_TLS",
        proxyAdminPort: 15000,
        statNameLength: 189,
        statusPort: 15020,
      },
    });
  });
});

describe("withMeshDefaults", () => {
  const untouched = toJson(MeshConfigSchema, defaultMeshConfig());

  it("changes nothing where nothing is written", () => expect(over({})).toEqual(untouched));

  it("tells false and empty from unwritten", () => {
    const got = over({ enableTracing: false, enableAutoMtls: false, defaultServiceExportTo: ["~"], ingressClass: "" });
    expect(got).toMatchObject({ enableAutoMtls: false, defaultServiceExportTo: ["~"] });
    expect(got).not.toHaveProperty("enableTracing");
    expect(got).not.toHaveProperty("ingressClass");
  });

  it("replaces a written message whole", () => expect(over({ outboundTrafficPolicy: {} })).toMatchObject({ outboundTrafficPolicy: {} }));

  it("fills up defaultConfig field by field, one name of the cluster instead of the other", () => {
    const got = over({ defaultConfig: { tracingServiceName: "CANONICAL_NAME_ONLY", statusPort: 1, concurrency: 0 } });
    expect(got).toMatchObject({
      defaultConfig: { tracingServiceName: "CANONICAL_NAME_ONLY", statusPort: 1, concurrency: 0, proxyAdminPort: 15000 },
    });
    expect(got).not.toHaveProperty("defaultConfig.serviceCluster");
  });

  it("replaces extension providers by name and adds others", () => {
    const got = over({
      extensionProviders: [
        { name: "envoy", prometheus: {} },
        { name: "mine", prometheus: {} },
      ],
    });
    expect(got).toMatchObject({
      extensionProviders: [{ name: "prometheus" }, { name: "stackdriver" }, { name: "envoy", prometheus: {} }, { name: "mine" }],
    });
  });

  it("sorts trust domain aliases and drops doubles, the trust domain itself among them", () => {
    expect(over({ trustDomainAliases: ["b", "a", "b", "cluster.local"] })).toMatchObject({ trustDomainAliases: ["a", "b"] });
    expect(over({ trustDomain: "b", trustDomainAliases: ["b", "cluster.local"] })).toMatchObject({ trustDomainAliases: ["cluster.local"] });
  });

  it("leaves its argument alone", () => {
    const json = { trustDomain: "x", defaultConfig: { statusPort: 1 } };
    const message = fromJson(MeshConfigSchema, json);
    withMeshDefaults({ message, json });
    expect(toJson(MeshConfigSchema, message)).toEqual(json);
  });
});

describe("withProxyDefaults", () => {
  it("joins metadata by key and keeps header settings that are not written", () => {
    const json = { proxyMetadata: { B: "2" }, proxyHeaders: { server: { value: "me" } } };
    const base = fromJson(ProxyConfigSchema, {
      proxyMetadata: { A: "1", B: "1" },
      proxyHeaders: { server: { value: "you" }, requestId: { disabled: true }, forwardedClientCert: "SANITIZE" },
    });
    const got = withProxyDefaults(base, { message: fromJson(ProxyConfigSchema, json), json });
    expect(toJson(ProxyConfigSchema, got)).toEqual({
      proxyMetadata: { A: "1", B: "2" },
      proxyHeaders: { server: { value: "me" }, requestId: { disabled: true }, forwardedClientCert: "SANITIZE" },
    });
  });
});
