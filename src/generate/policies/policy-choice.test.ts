import { describe, expect, it } from "vitest";
import { meshFrom, type TestMesh } from "../../../test/support/mesh-from.ts";
import { LISTENER_TYPE } from "../../wire/type-urls.ts";

const WANTED = { wildcard: true, names: { id: 0, names: new Set<string>() } };

const HEADER = `
proxies:
- {name: web-1, namespace: shop, address: 10.1.0.1, labels: {app: web, hash: a}}
- {name: web-2, namespace: shop, address: 10.1.0.2, labels: {app: web, hash: b}}
- {name: other, namespace: shop, address: 10.1.0.3, labels: {app: other}}
- {name: far, namespace: far, address: 10.1.0.4, labels: {app: web}}
- {name: edge, type: router, namespace: shop, address: 10.1.0.5, labels: {gateway.networking.k8s.io/gateway-name: public, gateway.networking.k8s.io/gateway-class-name: istio}}
---`;

const policy = (name: string, namespace: string, spec: string): string => `
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: ${name}, namespace: ${namespace}}
spec: ${spec}
---`;

const GATEWAY = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: public, namespace: shop}
spec:
  selector: {gateway.networking.k8s.io/gateway-name: public}
  servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]
---`;

/** Keys of the policies behind the listener that takes a proxy's traffic. */
function policiesOf(mesh: TestMesh, name: string): readonly string[] {
  const proxy = mesh.proxies.find((one) => one.name === name);
  const provider = mesh.world.providers.find(({ typeUrl }) => typeUrl === LISTENER_TYPE);
  if (proxy === undefined || provider === undefined) throw new Error(`no proxy ${name}`);
  const listener = proxy.view.type === "router" ? "0.0.0.0_80" : "virtualInbound";
  expect(provider.offered(proxy.view, WANTED).resources.has(listener)).toBe(true);
  return provider.provenance(proxy.view, listener).filter((key) => key.startsWith("AuthorizationPolicy/"));
}

const nodes = (mesh: TestMesh, query: string): number | undefined => mesh.world.engine.stats().queries[query]?.nodes;

describe("policies of a workload", () => {
  const mesh = meshFrom(
    HEADER +
      GATEWAY +
      policy("everywhere", "istio-system", "{rules: [{}]}") +
      policy("webs-everywhere", "istio-system", "{selector: {matchLabels: {app: web}}, rules: [{}]}") +
      policy("all", "shop", "{rules: [{}]}") +
      policy("web", "shop", "{selector: {matchLabels: {app: web}}, rules: [{}]}") +
      policy("gateway", "shop", "{targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: public}], rules: [{}]}") +
      policy("service", "shop", "{targetRefs: [{group: '', kind: Service, name: web}], rules: [{}]}") +
      policy("class", "istio-system", "{targetRefs: [{group: gateway.networking.k8s.io, kind: GatewayClass, name: istio}], rules: [{}]}"),
  );
  const root = ["AuthorizationPolicy/istio-system/everywhere"];
  const table: readonly [proxy: string, ...policies: string[]][] = [
    ["web-1", ...root, "AuthorizationPolicy/istio-system/webs-everywhere", "AuthorizationPolicy/shop/all", "AuthorizationPolicy/shop/web"],
    ["other", ...root, "AuthorizationPolicy/shop/all"],
    ["far", ...root, "AuthorizationPolicy/istio-system/webs-everywhere"],
    ["edge", "AuthorizationPolicy/istio-system/class", ...root, "AuthorizationPolicy/shop/all", "AuthorizationPolicy/shop/gateway"],
  ];
  for (const [proxy, ...policies] of table) it(`of ${proxy}`, () => expect(policiesOf(mesh, proxy)).toEqual(policies));

  it("are made into filters once for all workloads with the same ones", () => {
    for (const proxy of ["web-1", "web-2"]) policiesOf(mesh, proxy);
    expect(nodes(mesh, "policyFilters")).toBe(4);
  });

  it("cost nothing where there are none", () => {
    const bare = meshFrom(HEADER + GATEWAY);
    for (const proxy of ["web-1", "web-2", "other"]) policiesOf(bare, proxy);
    expect(nodes(bare, "policiesFor")).toBe(0);
    expect(nodes(bare, "policyFilters")).toBe(0);
  });

  it("change the listeners of those they apply to, and of no others", () => {
    const small = meshFrom(HEADER + policy("web", "shop", "{selector: {matchLabels: {app: web}}, rules: [{}]}"));
    const provider = small.world.providers.find(({ typeUrl }) => typeUrl === LISTENER_TYPE);
    const inbound = (name: string) => {
      const view = small.proxies.find((proxy) => proxy.name === name)?.view;
      return view === undefined ? undefined : provider?.offered(view, WANTED).resources.get("virtualInbound");
    };
    const [web, other] = [inbound("web-1"), inbound("other")];
    expect(inbound("web-2")).toBe(web);
    small.change({ put: policy("web", "shop", "{selector: {matchLabels: {app: web}}, rules: [{to: [{operation: {paths: [/a]}}]}]}") });
    expect(inbound("web-1")).not.toBe(web);
    expect(inbound("web-2")).toBe(inbound("web-1"));
    expect(inbound("other")).toBe(other);
  });
});
