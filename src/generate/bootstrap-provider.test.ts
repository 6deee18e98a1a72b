import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { meshFrom } from "../../test/support/mesh-from.ts";
import { type Bootstrap, BootstrapSchema } from "../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import type { ResourceSet } from "../wire/encoded.ts";
import { BOOTSTRAP_TYPE } from "../wire/type-urls.ts";

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
