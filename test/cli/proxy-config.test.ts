import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { proxyConfig } from "../../src/cli/commands/proxy-config.ts";
import { readClusterName } from "../../src/cli/proxy-config/clusters.ts";
import { NO_FILTER, type ProxyConfigFilter } from "../../src/cli/proxy-config/section.ts";
import type { ConfigDump } from "../../src/debug/api-types.ts";
import { istiodWith } from "./cli-host.ts";

const HCM = "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const TCP = "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy";
const istioMetadata = (path: string) => ({
  filterMetadata: { istio: { config: `/apis/networking.istio.io/v1alpha3/namespaces/shop/${path}` } },
});
const socket = (address: string, portValue: number) => ({ socketAddress: { address, portValue } });

const DUMP: ConfigDump = {
  configs: [
    {
      "@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump",
      dynamicActiveClusters: [
        {
          versionInfo: "1",
          clientStatus: "ACKED",
          cluster: { name: "outbound|80|v1|reviews.shop", type: "EDS", metadata: istioMetadata("destination-rule/reviews") },
        },
        { versionInfo: "1", clientStatus: "ACKED", cluster: { name: "inbound|8080||" } },
        {
          versionInfo: "1",
          clientStatus: "ACKED",
          why: [{ object: "ServiceEntry/shop/old", at: "conf/a.yaml:3", stale: true }],
          cluster: {
            name: "outbound|443||old.example",
            type: "STRICT_DNS",
            loadAssignment: { endpoints: [{ lbEndpoints: [{ endpoint: { address: socket("old.example", 443) } }] }] },
          },
        },
      ],
      dynamicWarmingClusters: [
        { versionInfo: "2", clientStatus: "REQUESTED", cluster: { name: "outbound|80|v1|reviews.shop", type: "EDS" } },
        {
          versionInfo: "2",
          clientStatus: "NACKED",
          errorState: { details: "bad", versionInfo: "2" },
          cluster: { name: "outbound|81||broken.shop", type: "EDS" },
        },
      ],
    },
    {
      "@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump",
      dynamicListeners: [
        {
          name: "0.0.0.0_80",
          clientStatus: "ACKED",
          activeState: {
            versionInfo: "1",
            listener: {
              name: "0.0.0.0_80",
              address: socket("0.0.0.0", 80),
              filterChains: [
                {
                  filterChainMatch: { transportProtocol: "raw_buffer", applicationProtocols: ["http/1.1", "h2c"] },
                  filters: [{ name: "hcm", typedConfig: { "@type": HCM, rds: { routeConfigName: "80" } } }],
                },
              ],
              defaultFilterChain: { filters: [{ name: "tcp", typedConfig: { "@type": TCP, cluster: "PassthroughCluster" } }] },
            },
          },
        },
        {
          name: "10.0.0.1_9000",
          clientStatus: "ACKED",
          activeState: {
            versionInfo: "1",
            listener: {
              name: "10.0.0.1_9000",
              address: socket("10.0.0.1", 9000),
              filterChains: [
                {
                  filterChainMatch: { serverNames: ["a.example"], prefixRanges: [{ addressPrefix: "10.0.0.1", prefixLen: 32 }] },
                  filters: [
                    {
                      name: "tcp",
                      typedConfig: {
                        "@type": TCP,
                        weightedClusters: {
                          clusters: [
                            { name: "x", weight: 90 },
                            { name: "y", weight: 10 },
                          ],
                        },
                      },
                    },
                  ],
                },
              ],
            },
          },
        },
      ],
    },
    {
      "@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump",
      dynamicRouteConfigs: [
        {
          versionInfo: "1",
          clientStatus: "ACKED",
          routeConfig: {
            name: "80",
            virtualHosts: [
              {
                name: "reviews.shop:80",
                domains: ["reviews.shop", "reviews", "10.0.0.1"],
                routes: [
                  { match: { prefix: "/login", headers: [{ name: "a" }] }, metadata: istioMetadata("virtual-service/reviews") },
                  { match: { safeRegex: { regex: "/v\\d+" } } },
                  { match: { path: "/exact" } },
                ],
              },
            ],
          },
        },
        { versionInfo: "1", clientStatus: "ACKED", routeConfig: { name: "81" } },
      ],
    },
    {
      "@type": "type.googleapis.com/envoy.admin.v3.EndpointsConfigDump",
      dynamicEndpointConfigs: [
        {
          versionInfo: "1",
          clientStatus: "ACKED",
          endpointConfig: {
            clusterName: "outbound|80|v1|reviews.shop",
            endpoints: [
              {
                locality: { region: "r", zone: "z" },
                lbEndpoints: [
                  { endpoint: { address: socket("10.1.0.1", 8080) }, loadBalancingWeight: 5 },
                  { endpoint: { address: socket("fd00::1", 8080) }, healthStatus: "UNHEALTHY" },
                ],
              },
            ],
          },
        },
      ],
    },
    {
      "@type": "type.googleapis.com/envoy.admin.v3.SecretsConfigDump",
      dynamicActiveSecrets: [
        {
          name: "local-cert:///etc/a.pem~/etc/a.key",
          versionInfo: "1",
          clientStatus: "ACKED",
          secret: { name: "local-cert:///etc/a.pem~/etc/a.key", tlsCertificate: { certificateChain: { filename: "/etc/a.pem" } } },
        },
        {
          name: "kubernetes://a-cacert",
          versionInfo: "1",
          clientStatus: "ACKED",
          secret: { name: "kubernetes://a-cacert", validationContext: { trustedCa: { inlineBytes: "aGVsbG8=" } } },
        },
      ],
    },
  ],
};

type Part = Parameters<typeof proxyConfig>[1]["sections"][number];

async function show(section: Part, filter: Partial<ProxyConfigFilter> = {}, why = false) {
  const istiod = istiodWith({ [`/debug/config_dump?proxyID=web.shop${why ? "&why" : ""}`]: DUMP });
  const outcome = await proxyConfig(istiod, { proxy: "web.shop", sections: [section], why, filter: { ...NO_FILTER, ...filter } });
  const lines = outcome.text.split("\n");
  return { data: outcome.data as readonly Record<string, unknown>[], lines, cells: lines.slice(1).map((line) => line.split(/\s{2,}/)) };
}

describe("istioctl proxy-config", () => {
  it("cluster: takes names apart, shows what is in use, and what is refused", async () => {
    const { lines, data } = await show("cluster");
    assert.match(lines[0] ?? "", /^SERVICE FQDN +PORT +SUBSET +DIRECTION +TYPE +DESTINATION RULE$/);
    assert.match(lines[1] ?? "", /^reviews\.shop +80 +v1 +outbound +EDS +reviews\.shop$/);
    assert.match(lines[2] ?? "", /^- +8080 +- +inbound +STATIC +-$/);
    assert.match(lines[4] ?? "", /^broken\.shop/);
    assert.equal(lines[5], "    refused by the proxy: bad");
    assert.equal(data.length, 4);
  });

  it("cluster: narrows by host, port, direction and subset", async () => {
    const names = async (filter: Partial<ProxyConfigFilter>) => (await show("cluster", filter)).data.map(({ name }) => name);
    assert.deepEqual(await names({ fqdn: "reviews.shop" }), ["outbound|80|v1|reviews.shop"]);
    assert.deepEqual(await names({ port: 8080 }), ["inbound|8080||"]);
    assert.deepEqual(await names({ direction: "inbound" }), ["inbound|8080||"]);
    assert.deepEqual(await names({ subset: "v1" }), ["outbound|80|v1|reviews.shop"]);
    assert.equal((await show("cluster", { fqdn: "nobody" })).lines[0], "no clusters");
  });

  it("cluster --why: names the objects with their places, and marks a last good version", async () => {
    const { lines, data } = await show("cluster", { fqdn: "old.example" }, true);
    assert.equal(lines[2], "    ServiceEntry/shop/old  conf/a.yaml:3 (broken there; last good version in force)");
    assert.deepEqual(data[0]?.why, [{ object: "ServiceEntry/shop/old", at: "conf/a.yaml:3", stale: true }]);
    assert.equal(data[0]?.version, "1");
  });

  it("listener: a row for each chain with its match and destination", async () => {
    const { cells } = await show("listener");
    assert.deepEqual(cells, [
      ["0.0.0.0", "80", "Trans: raw_buffer; App: http/1.1,h2c", "Route: 80"],
      ["0.0.0.0", "80", "ALL", "Cluster: PassthroughCluster"],
      ["10.0.0.1", "9000", "SNI: a.example; Addr: 10.0.0.1", "Clusters: x (90), y (10)"],
    ]);
    assert.equal((await show("listener", { type: "HTTP" })).data.length, 1);
    assert.equal((await show("listener", { address: "10.0.0.1", port: 9000 })).data.length, 1);
  });

  it("secret: a row for each certificate and CA; of files only the path is known", async () => {
    const { cells } = await show("secret");
    assert.deepEqual(cells, [
      ["local-cert:///etc/a.pem~/etc/a.key", "Cert Chain", "file /etc/a.pem", "-", "-", "-"],
      ["kubernetes://a-cacert", "CA", "cannot be read", "-", "-", "-"],
    ]);
    assert.equal((await show("secret", { name: "kubernetes://a-cacert" })).data.length, 1);
  });

  it("route: a row for each route with its match and VirtualService", async () => {
    const { cells } = await show("route");
    assert.deepEqual(cells, [
      ["80", "reviews.shop:80", "reviews.shop, reviews + 1 more...", "/login* and 1 more", "reviews.shop"],
      ["80", "reviews.shop:80", "reviews.shop, reviews + 1 more...", "~/v\\d+", "-"],
      ["80", "reviews.shop:80", "reviews.shop, reviews + 1 more...", "/exact", "-"],
      ["81", "-", "-", "no virtual hosts", "-"],
    ]);
    assert.equal((await show("route", { name: "80" })).data.length, 1);
  });

  it("route --why: of a divided table each host with its origins and how it stands", async () => {
    const host = (name: string) => ({ name, domains: [`${name}.test`], routes: [{ match: { prefix: "/" } }] });
    const dump: ConfigDump = {
      configs: [
        {
          "@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump",
          dynamicRouteConfigs: [
            {
              versionInfo: "1",
              clientStatus: "ACKED",
              routeConfig: { name: "80", virtualHosts: [host("allow_any"), host("80/a"), host("80/b")] },
              discoveredHosts: [
                { name: "80/a", versionInfo: "2", clientStatus: "ACKED", why: [{ object: "VirtualService/shop/a", at: "conf/a.yaml:1" }] },
                { name: "80/b", versionInfo: "3", clientStatus: "NACKED", errorState: { details: "bad", versionInfo: "4" } },
              ],
            },
          ],
        },
      ],
    };
    const istiod = istiodWith({ "/debug/config_dump?proxyID=web.shop&why": dump });
    const { text, data } = await proxyConfig(istiod, { proxy: "web.shop", sections: ["route"], why: true, filter: NO_FILTER });
    assert.deepEqual(
      text
        .split("\n")
        .slice(1)
        .map((line) => line.trim().split(/\s{2,}/)),
      [
        ["80", "allow_any", "allow_any.test", "/*", "-"],
        ["no object: made from the mesh configuration alone"],
        ["80", "a", "80/a.test", "/*", "-"],
        ["VirtualService/shop/a", "conf/a.yaml:1"],
        ["80", "b", "80/b.test", "/*", "-"],
        ["refused by the proxy: bad"],
        ["no object: made from the mesh configuration alone"],
      ],
    );
    assert.deepEqual(
      (data as readonly { hosts: readonly { name: string; version: string }[] }[])[0]?.hosts.map(({ name, version }) => [name, version]),
      [
        ["80/a", "2"],
        ["80/b", "3"],
      ],
    );
  });

  it("endpoint: those of assignments and those written into clusters", async () => {
    const { cells } = await show("endpoint");
    assert.deepEqual(cells, [
      ["10.1.0.1:8080", "HEALTHY", "5", "r/z", "outbound|80|v1|reviews.shop"],
      ["[fd00::1]:8080", "UNHEALTHY", "-", "r/z", "outbound|80|v1|reviews.shop"],
      ["old.example:443", "HEALTHY", "-", "-", "outbound|443||old.example"],
    ]);
    assert.equal((await show("endpoint", { status: "unhealthy" })).cells.length, 1);
    assert.equal((await show("endpoint", { cluster: "outbound|443||old.example" })).cells.length, 1);
  });

  it("all: every part, by name", async () => {
    const istiod = istiodWith({ "/debug/config_dump?proxyID=web.shop": DUMP });
    const { data } = await proxyConfig(istiod, {
      proxy: "web.shop",
      sections: ["cluster", "listener", "route", "endpoint"],
      why: false,
      filter: NO_FILTER,
    });
    assert.deepEqual(Object.keys(data as object), ["clusters", "listeners", "routes", "endpoints"]);
  });
});

describe("readClusterName", () => {
  it("takes names without parts whole", () =>
    assert.deepEqual(readClusterName("BlackHoleCluster"), { direction: "", port: "", subset: "", host: "BlackHoleCluster" }));
});
