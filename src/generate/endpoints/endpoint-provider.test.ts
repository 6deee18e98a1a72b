import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { meshFrom, type TestMesh, type TestProxy } from "../../../test/support/mesh-from.ts";
import { readDocuments } from "../../config/documents/read-documents.ts";
import { objectKey } from "../../config/object.ts";
import { readObject } from "../../config/read-object.ts";
import { ClusterLoadAssignmentSchema } from "../../gen/envoy/config/endpoint/v3/endpoint_pb.js";
import type { ResourceSet } from "../../wire/encoded.ts";
import { ENDPOINT_TYPE } from "../../wire/type-urls.ts";
import { createNameSets } from "../../xds/name-sets.ts";

const service = (name: string, endpoints: string): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: shop}
spec:
  hosts: [${name}.shop.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP}]
  endpoints: ${endpoints}
---`;

const HEADER = `
proxies:
- {name: one, namespace: shop, address: 10.9.0.1, labels: {istio-locality: eu.west.a}}
- {name: two, namespace: shop, address: 10.9.0.2, labels: {istio-locality: us.east.a}}
- {name: other, namespace: bank, address: 10.9.0.3}
---`;

const names = createNameSets();
const clusters = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `outbound|80||s${index}.shop.svc.cluster.local`);

function offered(mesh: TestMesh, proxy: TestProxy | undefined, wanted: readonly string[]): ResourceSet {
  const provider = mesh.world.providers.find(({ typeUrl }) => typeUrl === ENDPOINT_TYPE);
  if (proxy === undefined || provider === undefined) throw new Error("no such proxy");
  return provider.offered(proxy.view, { wildcard: false, names: names.of(wanted) });
}

function put(mesh: TestMesh, yaml: string): void {
  for (const raw of readDocuments(yaml, { source: "test", file: "change.yaml", scope: "change.yaml" })) {
    const { object } = readObject(raw);
    if (object !== undefined) mesh.world.inputs.objects.set(objectKey(object), object);
  }
}

/** How often queries about endpoints and clusters ran while `fn` did. */
function runs(mesh: TestMesh, fn: () => unknown): Readonly<Record<string, number>> {
  const before = mesh.world.engine.stats().queries;
  fn();
  return Object.fromEntries(
    Object.entries(mesh.world.engine.stats().queries)
      .map(([name, { runs: after }]) => [name, after - (before[name]?.runs ?? 0)] as const)
      .filter(([name, count]) => count > 0 && /^(endpoints|clusters)\./.test(name)),
  );
}

const many = (count: number): string =>
  Array.from({ length: count }, (_, index) => service(`s${index}`, `[{address: 10.1.0.${index + 1}}]`)).join("");

describe("load assignments", () => {
  it("of a change of one endpoint re-run that one and the set, whoever holds it", () => {
    const mesh = meshFrom(HEADER + many(20));
    const all = (): readonly ResourceSet[] => mesh.proxies.map((proxy) => offered(mesh, proxy, clusters(20)));
    const before = all();
    expect(new Set(before).size).toBe(1);
    put(mesh, service("s7", "[{address: 10.1.0.99}]"));
    expect(runs(mesh, all)).toEqual({ "endpoints.assignment": 1, "endpoints.set": 1 });
    const after = all();
    const changed = [...(after[0]?.resources ?? [])]
      .filter(([name, resource]) => before[0]?.resources.get(name) !== resource)
      .map(([name]) => name);
    expect(changed).toEqual(["outbound|80||s7.shop.svc.cluster.local"]);
  });

  it("of a proxy's own kind, for whom asks, are those of its service without rules for callers", () => {
    const rule = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: s0, namespace: shop}
spec: {host: s0.shop.svc.cluster.local, trafficPolicy: {outlierDetection: {}, loadBalancer: {localityLbSetting: {failover: [{from: eu, to: us}]}}}}
---`;
    const mesh = meshFrom(
      `${HEADER}${rule}${service("s0", "[{address: 10.9.0.1, locality: eu/west/a}, {address: 10.9.0.8, locality: us/east/a}]")}`,
    );
    const [resource] = offered(mesh, mesh.proxies[0], ["local_cluster"]).resources.values();
    const assignment = fromBinary(ClusterLoadAssignmentSchema, resource?.body ?? new Uint8Array());
    expect(assignment.clusterName).toBe("local_cluster");
    expect(assignment.endpoints.map(({ locality, priority }) => [locality?.zone, priority])).toEqual([
      ["west", 0],
      ["east", 0],
    ]);
    expect([...offered(mesh, mesh.proxies[1], ["local_cluster"]).resources.keys()]).toEqual([]);
  });

  it("are the same object while nothing changed that they read", () => {
    const mesh = meshFrom(HEADER + many(3));
    const before = offered(mesh, mesh.proxies[0], clusters(3));
    put(mesh, service("elsewhere", "[{address: 10.1.9.1}]"));
    expect(offered(mesh, mesh.proxies[0], clusters(3))).toBe(before);
  });

  it("leave out names that mean nothing", () => {
    const mesh = meshFrom(HEADER + many(1));
    const wanted = [
      "outbound|80||s0.shop.svc.cluster.local",
      "outbound|81||s0.shop.svc.cluster.local",
      "outbound|80|v1|s0.shop.svc.cluster.local",
      "outbound|80||gone.test",
      "nonsense",
    ];
    expect([...offered(mesh, mesh.proxies[0], wanted).resources.keys()]).toEqual(["outbound|80||s0.shop.svc.cluster.local"]);
  });

  it("are split by locality only where a rule looks at it", () => {
    const rule = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: s1, namespace: shop}
spec: {host: s1, trafficPolicy: {outlierDetection: {}}}
---`;
    const mesh = meshFrom(HEADER + many(3) + rule);
    put(mesh, service("s1", "[{address: 10.1.0.2, locality: eu/west/a}, {address: 10.1.0.3, locality: us/east/a}]"));
    const [one, two] = mesh.proxies.map((proxy) => offered(mesh, proxy, clusters(3)).resources);
    for (const name of clusters(3)) expect(one?.get(name) === two?.get(name)).toBe(name !== "outbound|80||s1.shop.svc.cluster.local");
  });

  it("say what they were made from", () => {
    const mesh = meshFrom(`${HEADER + many(2)}
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: s1, namespace: shop}
spec: {host: s1, trafficPolicy: {tls: {mode: DISABLE}}}
`);
    const provider = mesh.world.providers.find(({ typeUrl }) => typeUrl === ENDPOINT_TYPE);
    const [proxy] = mesh.proxies;
    if (proxy === undefined) throw new Error("no proxy");
    expect(provider?.provenance(proxy.view, "outbound|80||s1.shop.svc.cluster.local")).toEqual([
      "ServiceEntry/shop/s1",
      "DestinationRule/shop/s1",
    ]);
    expect(provider?.provenance(proxy.view, "outbound|80||none.test")).toEqual([]);
  });

  it("of hosts that stay in their cluster are for clients there; the most specific setting counts", () => {
    const mesh = meshFrom(
      `
mesh: {serviceSettings: [{hosts: ["*.shop.svc.cluster.local"], settings: {clusterLocal: true}}, {hosts: [s1.shop.svc.cluster.local]}]}
proxies:
- {name: near, namespace: shop, address: 10.9.0.1, CLUSTER_ID: Kubernetes}
- {name: far, namespace: shop, address: 10.9.0.2, CLUSTER_ID: elsewhere}
---${many(2)}`,
    );
    const sizes = mesh.proxies.map((proxy) =>
      [...offered(mesh, proxy, clusters(2)).resources.values()].map(({ body }) => Buffer.from(body).includes("10.1.0.")),
    );
    expect(sizes).toEqual([
      [true, true],
      [false, true],
    ]);
  });
});
