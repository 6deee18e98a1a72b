import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { meshFrom, type TestMesh } from "../../../test/support/mesh-from.ts";
import type { ResourceSet } from "../../wire/encoded.ts";
import { LISTENER_TYPE } from "../../wire/type-urls.ts";
import { NO_PLAN } from "./plan.ts";

const SERVICES = `proxies:
- {name: plain, namespace: shop, address: 10.1.0.8, labels: {app: plain}}
- {name: other, namespace: shop, address: 10.1.0.9, labels: {app: other}, ISTIO_VERSION: 1.20.0}
- {name: chosen, namespace: shop, address: 10.1.0.10, labels: {app: chosen}}
- {name: away, namespace: away, address: 10.1.0.11}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  addresses: [10.96.0.5]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 5432, name: tcp, protocol: TCP}]
`;

const patch = (name: string, { namespace = "shop", spec = "", match = "", connections = 1 } = {}): string => `---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: ${name}, namespace: ${namespace}}
spec:
  ${spec}
  configPatches:
  - applyTo: NETWORK_FILTER
    match: {${match} listener: {portNumber: 5432}}
    patch:
      operation: INSERT_FIRST
      value: {name: ${name}, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.connection_limit.v3.ConnectionLimit, stat_prefix: x, max_connections: ${connections}}}
`;

const PATCHED = "10.96.0.5_5432";

async function listeners(mesh: TestMesh): Promise<Readonly<Record<string, ResourceSet>>> {
  const sets: Record<string, ResourceSet> = {};
  for (const proxy of mesh.proxies) {
    const set = (await mesh.resources(proxy)).get(LISTENER_TYPE);
    assert.ok(set);
    sets[proxy.name] = set;
  }
  return sets;
}

/** Names of the listeners that two proxies do not share. */
const split = (a: ResourceSet | undefined, b: ResourceSet | undefined): readonly string[] =>
  [...(a?.resources ?? [])].filter(([name, resource]) => b?.resources.get(name) !== resource).map(([name]) => name);

describe("patched resources", () => {
  it("are not looked for where there is no EnvoyFilter", async () => {
    const mesh = meshFrom(SERVICES);
    for (const { view } of mesh.proxies) assert.equal(mesh.world.patches.plans.of(view), NO_PLAN);
  });

  it("are shared by all whom a patch does not tell apart", async () => {
    const { plain, other, chosen } = await listeners(meshFrom(SERVICES + patch("all")));
    assert.equal(plain, other);
    assert.equal(plain, chosen);
  });

  it("are split by a selector, and only those it is about", async () => {
    const { plain, other, chosen } = await listeners(
      meshFrom(SERVICES + patch("some", { spec: "workloadSelector: {labels: {app: chosen}}" })),
    );
    assert.deepEqual(split(plain, other), []);
    assert.deepEqual(split(plain, chosen), [PATCHED]);
  });

  it("are split by version only where a patch asks for it", async () => {
    const { plain, other } = await listeners(meshFrom(SERVICES + patch("new", { match: "proxy: {proxyVersion: '^1\\.3'}," })));
    assert.deepEqual(split(plain, other), [PATCHED]);
  });

  it("are shared between namespaces that patch them alike", async () => {
    const { plain, away } = await listeners(meshFrom(SERVICES + patch("all", { namespace: "istio-system" })));
    assert.deepEqual(split(plain, away), []);
  });

  it("follow a change, and those that no patch is about stay the same objects", async () => {
    const mesh = meshFrom(SERVICES + patch("all"));
    const { plain: before } = await listeners(mesh);
    mesh.change({ put: patch("all", { connections: 2 }) });
    const { plain: after } = await listeners(mesh);
    assert.deepEqual(split(before, after), [PATCHED]);
    mesh.change({ remove: ["EnvoyFilter/shop/all"] });
    const { plain: without } = await listeners(mesh);
    assert.deepEqual(split(after, without), [PATCHED]);
  });

  it("name the EnvoyFilters they were made with", async () => {
    const mesh = meshFrom(SERVICES + patch("all"));
    await listeners(mesh);
    const provider = mesh.world.providers.find(({ typeUrl }) => typeUrl === LISTENER_TYPE);
    const view = mesh.proxies[0]?.view;
    assert.ok(provider !== undefined && view !== undefined);
    assert.ok(provider.provenance(view, PATCHED).includes("EnvoyFilter/shop/all"));
    assert.ok(!provider.provenance(view, "0.0.0.0_80").includes("EnvoyFilter/shop/all"));
  });
});
