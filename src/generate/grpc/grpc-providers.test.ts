import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { meshFrom, type TestMesh } from "../../../test/support/mesh-from.ts";
import type { ResourceSet } from "../../wire/encoded.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "../../wire/type-urls.ts";
import { createNameSets } from "../../xds/name-sets.ts";

const service = (name: string, address: string, extra = ""): string => `---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop}
spec:
  hosts: [${name}.shop.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 7070, name: grpc, protocol: GRPC}, {number: 53, name: dns, protocol: UDP}, {number: 9000, name: http, protocol: HTTP}]
  endpoints:
  - {address: ${address}${extra}}
`;

const rules = (body: string): string => `---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: greeter, namespace: shop}
spec: {hosts: [greeter], http: [${body}]}
`;

const HEADER = `proxies:
- {name: one, namespace: shop, address: 10.9.0.1, GENERATOR: grpc, labels: {app: one}}
- {name: two, namespace: shop, address: 10.9.0.2, GENERATOR: grpc, labels: {app: two}, NODE_NAME: n2}
- {name: envoy, namespace: shop, address: 10.9.0.3}
- {name: away, namespace: away, address: 10.9.0.4, GENERATOR: grpc, NETWORK: far}
- {name: narrow, namespace: narrow, address: 10.9.0.5, GENERATOR: grpc}
`;

const MESH = `${HEADER}${service("greeter", "10.1.0.1")}${service("other", "10.1.0.2")}${rules("{route: [{destination: {host: greeter}}]}")}---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default, namespace: narrow}
spec: {egress: [{port: {number: 7070, name: grpc, protocol: GRPC}, hosts: ["shop/other.shop.svc.cluster.local"]}]}
`;

const GREETER = "outbound|7070||greeter.shop.svc.cluster.local";
const OTHER = "outbound|7070||other.shop.svc.cluster.local";

const names = createNameSets();

/** What is offered of a type to a proxy that asks for these names, or for everything. */
function ask(
  mesh: TestMesh,
  who: string,
  { type, wanted }: { readonly type: string; readonly wanted: readonly string[] | "all" },
): ResourceSet {
  const proxy = mesh.proxies.find(({ name }) => name === who);
  const provider = mesh.world.providers.find((one) => one.typeUrl === type);
  assert.ok(proxy !== undefined && provider !== undefined);
  return provider.offered(proxy.view, { wildcard: wanted === "all", names: names.of(wanted === "all" ? [] : wanted) });
}

const found = ({ resources }: ResourceSet): readonly string[] => [...resources.keys()].sort();

describe("workloads that speak gRPC without a proxy", () => {
  it("are offered what they name and nothing else", () => {
    const mesh = meshFrom(MESH);
    const dialled = ["greeter:7070", "greeter.shop.svc.cluster.local:7070", "greeter:53", "greeter:80", "nobody:7070", "greeter"];
    assert.deepEqual(found(ask(mesh, "one", { type: LISTENER_TYPE, wanted: dialled })), [
      "greeter.shop.svc.cluster.local:7070",
      "greeter:7070",
    ]);
    for (const type of [ROUTE_TYPE, CLUSTER_TYPE, ENDPOINT_TYPE]) {
      assert.deepEqual(
        found(ask(mesh, "one", { type, wanted: [GREETER, "outbound|80||greeter.shop.svc.cluster.local", "inbound|1||"] })),
        [GREETER],
        type,
      );
      assert.deepEqual(found(ask(mesh, "one", { type, wanted: "all" })), [], `${type}: everything`);
    }
    assert.deepEqual(found(ask(mesh, "one", { type: CLUSTER_TYPE, wanted: [`outbound|7070|v9|greeter.shop.svc.cluster.local`] })), []);
  });

  it("get every target of their scope where they ask for all listeners", () => {
    const mesh = meshFrom(MESH);
    const targets = ["greeter", "other"].flatMap((name) => [7070, 9000].map((port) => `${name}.shop.svc.cluster.local:${port}`));
    assert.deepEqual(found(ask(mesh, "one", { type: LISTENER_TYPE, wanted: "all" })), targets);
    assert.deepEqual(found(ask(mesh, "narrow", { type: LISTENER_TYPE, wanted: "all" })), ["other.shop.svc.cluster.local:7070"]);
    assert.deepEqual(found(ask(mesh, "narrow", { type: CLUSTER_TYPE, wanted: [GREETER, OTHER] })), [OTHER]);
    assert.deepEqual(
      found(ask(mesh, "narrow", { type: LISTENER_TYPE, wanted: ["other.shop:7070", "other.shop:9000", "greeter.shop:7070"] })),
      ["other.shop:7070"],
    );
    assert.deepEqual(found(ask(mesh, "narrow", { type: CLUSTER_TYPE, wanted: ["outbound|9000||other.shop.svc.cluster.local"] })), []);
  });

  it("share what they are offered, whatever tells them apart", () => {
    const mesh = meshFrom(MESH);
    assert.equal(
      ask(mesh, "one", { type: LISTENER_TYPE, wanted: ["greeter:7070"] }),
      ask(mesh, "two", { type: LISTENER_TYPE, wanted: ["greeter:7070"] }),
    );
    for (const type of [ROUTE_TYPE, CLUSTER_TYPE, ENDPOINT_TYPE]) {
      assert.equal(ask(mesh, "one", { type, wanted: [GREETER] }), ask(mesh, "two", { type, wanted: [GREETER] }), type);
      const [near, far] = ["one", "away"].map((who) => ask(mesh, who, { type, wanted: [GREETER] }).resources.get(GREETER));
      assert.ok(near !== undefined);
      assert.equal(near, far, `${type} in another namespace`);
    }
  });

  it("are told apart by labels where a rule asks for them", () => {
    const mesh = meshFrom(MESH);
    mesh.change({
      put: rules("{match: [{sourceLabels: {app: one}}], route: [{destination: {host: other}}]}, {route: [{destination: {host: greeter}}]}"),
    });
    const [one, two] = ["one", "two"].map((who) => ask(mesh, who, { type: ROUTE_TYPE, wanted: [GREETER] }).resources.get(GREETER));
    assert.notEqual(one?.version, two?.version);
  });

  it("see of a change what it touches", () => {
    const mesh = meshFrom(MESH);
    const both = [GREETER, OTHER];
    const look = () => [ROUTE_TYPE, CLUSTER_TYPE, ENDPOINT_TYPE].map((type) => ask(mesh, "one", { type, wanted: both }));
    const before = look();
    mesh.change({ put: service("greeter", "10.1.0.9") });
    const moved = look();
    assert.deepEqual(
      moved.map((set, index) => set === before[index]),
      [true, true, false],
    );
    assert.equal(moved[2]?.resources.get(OTHER), before[2]?.resources.get(OTHER));
    mesh.change({ put: rules("{timeout: 1s, route: [{destination: {host: greeter}}]}") });
    const ruled = look();
    assert.deepEqual(
      ruled.map((set, index) => set === moved[index]),
      [false, true, true],
    );
    assert.equal(ruled[0]?.resources.get(OTHER), moved[0]?.resources.get(OTHER));
  });

  it("say which objects a resource was made from", () => {
    const mesh = meshFrom(MESH);
    const view = mesh.proxies[0]?.view;
    assert.ok(view !== undefined);
    const from = (typeUrl: string, name: string) => mesh.world.providers.find((one) => one.typeUrl === typeUrl)?.provenance(view, name);
    assert.deepEqual(from(LISTENER_TYPE, "greeter:7070"), ["ServiceEntry/shop/greeter"]);
    assert.deepEqual(from(ROUTE_TYPE, GREETER), ["ServiceEntry/shop/greeter", "VirtualService/shop/greeter"]);
    assert.deepEqual(from(CLUSTER_TYPE, GREETER), ["ServiceEntry/shop/greeter"]);
    assert.deepEqual(from(ENDPOINT_TYPE, GREETER), ["ServiceEntry/shop/greeter"]);
    assert.deepEqual(from(ENDPOINT_TYPE, "outbound|1||nobody"), []);
  });

  it("are not patched by EnvoyFilters, and not counted among those that are", async () => {
    const mesh = meshFrom(`${MESH}---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: all, namespace: istio-system}
spec: {configPatches: [{applyTo: CLUSTER, patch: {operation: MERGE, value: {connect_timeout: 3s}}}]}
`);
    const [report] = await mesh.patchReport();
    assert.equal(report?.proxies, 1);
    const before = meshFrom(MESH);
    const version = (one: TestMesh) => ask(one, "one", { type: CLUSTER_TYPE, wanted: [GREETER] }).resources.get(GREETER)?.version;
    assert.equal(version(mesh), version(before));
  });

  it("are not led to endpoints in other networks, which they could not tell a gateway from", () => {
    const mesh =
      meshFrom(`${HEADER}${service("greeter", "10.1.0.1", ", network: near, labels: {security.istio.io/tlsMode: istio}}\n  - {address: 10.1.0.7, network: far")}---
apiVersion: v1
kind: Service
metadata: {name: gateway, namespace: istio-system, labels: {topology.istio.io/network: near}}
spec: {type: LoadBalancer, ports: [{port: 15443}], externalIPs: [192.0.2.1]}
`);
    const body = ask(mesh, "away", { type: ENDPOINT_TYPE, wanted: [GREETER] }).resources.get(GREETER)?.body ?? new Uint8Array();
    const text = Buffer.from(body).toString("latin1");
    assert.ok(text.includes("10.1.0.7") && !text.includes("10.1.0.1") && !text.includes("192.0.2.1"));
  });
});
