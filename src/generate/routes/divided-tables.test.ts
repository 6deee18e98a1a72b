import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "vitest";
import { goldenCases } from "../../../test/support/golden.ts";
import { meshFrom, type TestMesh } from "../../../test/support/mesh-from.ts";
import { comparableTables } from "../../../test/support/whole-table.ts";
import type { ProxyView } from "../../model/proxy.ts";
import type { ResourceSet } from "../../wire/encoded.ts";
import { ROUTE_TYPE, VIRTUAL_HOST_TYPE } from "../../wire/type-urls.ts";
import type { NameSet, ResourceProvider } from "../../xds/provider.ts";

const providerOf = (mesh: TestMesh, typeUrl: string): ResourceProvider =>
  mesh.world.providers.find((one) => one.typeUrl === typeUrl) ?? assert.fail(typeUrl);

let lastId = 1_000_000;
const namesOf = (names: Iterable<string>): NameSet => {
  lastId += 1;
  return { id: lastId, names: new Set(names) };
};

/** Tables and hosts of a proxy as it would be if it took hosts one by one, or did not. */
function offered(mesh: TestMesh, view: ProxyView, { vhds, names }: { readonly vhds: boolean; readonly names: NameSet }) {
  const asked = { ...view, metadata: { ...view.metadata, vhds } };
  return new Map<string, ResourceSet>([
    [ROUTE_TYPE, providerOf(mesh, ROUTE_TYPE).offered(asked, { wildcard: false, names })],
    [VIRTUAL_HOST_TYPE, providerOf(mesh, VIRTUAL_HOST_TYPE).offered(asked, { wildcard: true, names })],
  ]);
}

describe("divided tables", () => {
  const cases = goldenCases(join(import.meta.dirname, "../../../test/golden")).filter(({ topic }) => topic !== "grpc");
  for (const [topic, list = []] of Object.entries(Object.groupBy(cases, (one) => one.topic))) {
    it(`hold the same hosts and routes as whole ones, in all golden cases of ${topic}`, async () => {
      for (const one of list) {
        const mesh = meshFrom(one.input);
        for (const proxy of mesh.proxies) {
          const names = namesOf((await mesh.resources(proxy)).get(ROUTE_TYPE)?.resources.keys() ?? []);
          const [divided, whole] = [true, false].map((vhds) => offered(mesh, proxy.view, { vhds, names }));
          assert.ok(divided !== undefined && whole !== undefined);
          assert.deepEqual(await comparableTables(divided), await comparableTables(whole), `${one.topic}/${one.name} ${proxy.name}`);
          assert.equal(whole.get(VIRTUAL_HOST_TYPE)?.resources.size, 0);
        }
      }
    });
  }

  const MESH = `proxies:
- {name: own, namespace: shop, VHDS: "true"}
- {name: other, namespace: depot, VHDS: "true"}
- {name: another, namespace: bank, VHDS: "true"}
- {name: edge, namespace: shop, type: router, VHDS: "true"}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.shop.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}, {number: 81, name: sniffed}]
  endpoints: [{address: 10.1.0.1}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop}
spec: {hosts: [cart], http: [{route: [{destination: {host: cart, subset: v1}}]}]}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop}
spec: {host: cart, subsets: [{name: v1}]}
`;
  const HOST = "80/cart.shop.svc.cluster.local:80";
  const view = (mesh: TestMesh, name: string): ProxyView => mesh.proxies.find((one) => one.name === name)?.view ?? assert.fail(name);
  const hosts = (mesh: TestMesh, name: string, names: Iterable<string>): ResourceSet["resources"] =>
    providerOf(mesh, VIRTUAL_HOST_TYPE).offered(view(mesh, name), { wildcard: true, names: namesOf(names) }).resources;

  it("share hosts between all who call them by the same names", () => {
    const mesh = meshFrom(MESH);
    const [own, other, another] = ["own", "other", "another"].map((name) => hosts(mesh, name, ["80"]).get(HOST));
    assert.ok(own !== undefined && other !== undefined);
    assert.equal(other, another);
    assert.notEqual(own, other);
  });

  it("are not those of one sniffed service, nor those of gateways", () => {
    const mesh = meshFrom(MESH);
    assert.deepEqual([...hosts(mesh, "own", ["cart.shop.svc.cluster.local:81"])], []);
    assert.deepEqual([...hosts(mesh, "edge", ["http.80"])], []);
  });

  it("have a host that nobody calls where they have no other", () => {
    const mesh = meshFrom(MESH);
    assert.deepEqual([...hosts(mesh, "own", ["9999"]).keys()], ["9999/none"]);
  });

  it("are asked for by nobody who asks by name", () => {
    const mesh = meshFrom(MESH);
    const wanted = { wildcard: false, names: namesOf(["80"]) };
    assert.equal(providerOf(mesh, VIRTUAL_HOST_TYPE).offered(view(mesh, "own"), wanted).resources.size, 0);
  });

  it("say of each host what it was made from", () => {
    const mesh = meshFrom(MESH);
    assert.deepEqual([...providerOf(mesh, VIRTUAL_HOST_TYPE).provenance(view(mesh, "other"), HOST)].sort(), [
      "DestinationRule/shop/cart",
      "ServiceEntry/shop/cart",
      "VirtualService/shop/cart",
    ]);
    assert.deepEqual(providerOf(mesh, VIRTUAL_HOST_TYPE).provenance(view(mesh, "other"), "80/none"), []);
  });
});
