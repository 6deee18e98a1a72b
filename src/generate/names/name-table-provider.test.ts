import assert from "node:assert/strict";
import { fromBinary } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { meshFrom, type TestMesh } from "../../../test/support/mesh-from.ts";
import { NameTableSchema } from "../../gen/istio/networking/nds/v1/name_table_pb.js";
import { encode } from "../../wire/encode.ts";
import type { ResourceSet } from "../../wire/encoded.ts";
import { NAME_TABLE_TYPE } from "../../wire/type-urls.ts";
import { NO_NAMES } from "../../xds/name-sets.ts";

const SERVICE = `---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.1, ports: [{port: 80, name: http}]}
`;

const slice = (service: string, endpoints: string): string => `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${service}-1, namespace: shop, labels: {kubernetes.io/service-name: ${service}}}
addressType: IPv4
ports: [{name: http, port: 80}]
endpoints: [${endpoints}]
`;

const MESH = `proxies:
- {name: one, namespace: shop, address: 10.9.0.1, labels: {app: one}}
- {name: two, namespace: shop, address: 10.9.0.2, labels: {app: two}, NODE_NAME: n2}
- {name: six, namespace: shop, address: "fd00::9"}
${SERVICE}---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop}
spec: {clusterIP: None, ports: [{port: 80, name: http}]}
${slice("web", "{addresses: [10.1.0.1]}")}${slice("db", "{addresses: [10.1.1.1]}")}`;

function offered(mesh: TestMesh, who: string): ResourceSet {
  const proxy = mesh.proxies.find(({ name }) => name === who);
  const provider = mesh.world.providers.find(({ typeUrl }) => typeUrl === NAME_TABLE_TYPE);
  assert.ok(proxy !== undefined && provider !== undefined);
  const wanted = { wildcard: true, names: NO_NAMES };
  for (const _ of provider.prepare(proxy.view, wanted));
  return provider.offered(proxy.view, wanted);
}

const tableOf = (mesh: TestMesh, who: string) =>
  fromBinary(NameTableSchema, offered(mesh, who).resources.get("")?.body ?? new Uint8Array()).table;

const runsOf = ({ world }: TestMesh, query: string): number => world.engine.stats().queries[query]?.runs ?? 0;

describe("the table of names", () => {
  it("is one resource without a name, encoded as any other message would be", () => {
    const body = offered(meshFrom(MESH), "one").resources.get("")?.body;
    assert.ok(body !== undefined);
    assert.deepEqual(encode(NameTableSchema, fromBinary(NameTableSchema, body)), body);
  });

  it("is shared by the workloads of a scope, and differs by family", () => {
    const mesh = meshFrom(MESH);
    assert.equal(offered(mesh, "one"), offered(mesh, "two"));
    assert.deepEqual(Object.keys(tableOf(mesh, "one")), ["db.shop.svc.cluster.local", "web.shop.svc.cluster.local"]);
    assert.deepEqual(Object.keys(tableOf(mesh, "six")), ["db.shop.svc.cluster.local"]);
  });

  it("does not care for endpoints of services with an address, and follows those of headless ones", () => {
    const mesh = meshFrom(MESH);
    const before = offered(mesh, "one");
    const runs = runsOf(mesh, "names.ofService");
    mesh.change({ put: slice("web", "{addresses: [10.1.0.1]}, {addresses: [10.1.0.2]}") });
    assert.equal(offered(mesh, "one"), before);
    assert.equal(runsOf(mesh, "names.ofService"), runs);
    mesh.change({ put: slice("db", "{addresses: [10.1.1.1]}, {addresses: [10.1.1.2]}") });
    assert.deepEqual(tableOf(mesh, "one")["db.shop.svc.cluster.local"]?.ips, ["10.1.1.1", "10.1.1.2"]);
    mesh.change({ remove: ["Service/shop/web"] });
    assert.deepEqual(Object.keys(tableOf(mesh, "one")), ["db.shop.svc.cluster.local"]);
  });

  it("says which objects it was made from", () => {
    const mesh = meshFrom(MESH);
    const view = mesh.proxies[0]?.view;
    const provider = mesh.world.providers.find(({ typeUrl }) => typeUrl === NAME_TABLE_TYPE);
    assert.ok(view !== undefined);
    assert.deepEqual(provider?.provenance(view, ""), ["Service/shop/db", "Service/shop/web"]);
  });
});
