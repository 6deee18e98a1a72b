import { describe, expect, it } from "vitest";
import { meshFrom, type TestMesh } from "../../../test/support/mesh-from.ts";
import { readDocuments } from "../../config/documents/read-documents.ts";
import { objectKey } from "../../config/object.ts";
import { readObject } from "../../config/read-object.ts";
import type { ResourceSet } from "../../wire/encoded.ts";
import { CLUSTER_TYPE } from "../../wire/type-urls.ts";
import { createNameSets } from "../../xds/name-sets.ts";

const WEB = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec:
  hosts: [web.shop.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}]
  endpoints:
  - {address: 10.1.0.1, labels: {app: web}, serviceAccount: web}
  - {address: 10.1.0.2, labels: {app: web}, serviceAccount: web}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: api, namespace: shop}
spec:
  hosts: [api.test]
  location: MESH_EXTERNAL
  resolution: DNS
  ports: [{number: 80, name: http, protocol: HTTP, targetPort: 443}]
---`;

const HEADER = `
proxies:
- {name: web-1, namespace: shop, address: 10.1.0.1}
- {name: web-2, namespace: shop, address: 10.1.0.2}
- {name: bank, namespace: bank, address: 10.1.1.1}
- {name: bare, namespace: bank, address: 10.1.1.2, WORKLOAD_IDENTITY: none}
---`;

const rule = (host: string, policy: string, more = ""): string => `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: rule, namespace: shop}
spec: {host: ${host}, trafficPolicy: ${policy}${more}}
---`;

const provider = (mesh: TestMesh) => {
  const found = mesh.world.providers.find(({ typeUrl }) => typeUrl === CLUSTER_TYPE);
  if (found === undefined) throw new Error("no provider");
  return found;
};

function offered(mesh: TestMesh, name: string): ResourceSet {
  const proxy = mesh.proxies.find((one) => one.name === name);
  if (proxy === undefined) throw new Error(`no proxy ${name}`);
  return provider(mesh).offered(proxy.view, { wildcard: true, names: createNameSets().of([]) });
}

function put(mesh: TestMesh, yaml: string): void {
  for (const raw of readDocuments(yaml, { source: "test", file: "change.yaml", scope: "change.yaml" })) {
    const { object } = readObject(raw);
    if (object !== undefined) mesh.world.inputs.objects.set(objectKey(object), object);
  }
}

const WEB_CLUSTER = "outbound|80||web.shop.svc.cluster.local";

describe("clusters", () => {
  it("are one set for the pods of one workload, and one cluster for all namespaces that see the same rule", () => {
    const mesh = meshFrom(HEADER + WEB);
    expect(offered(mesh, "web-1")).toBe(offered(mesh, "web-2"));
    expect(offered(mesh, "bank")).not.toBe(offered(mesh, "web-1"));
    expect(offered(mesh, "bank").resources.get(WEB_CLUSTER)).toBe(offered(mesh, "web-1").resources.get(WEB_CLUSTER));
    expect([...offered(mesh, "web-1").resources.keys()].sort()).toEqual(
      [
        "BlackHoleCluster",
        "InboundPassthroughCluster",
        "PassthroughCluster",
        "inbound|8080||",
        "outbound|80||api.test",
        WEB_CLUSTER,
      ].sort(),
    );
  });

  it("do not change when an endpoint does", () => {
    const mesh = meshFrom(HEADER + WEB);
    const before = offered(mesh, "bank");
    put(mesh, WEB.replace("10.1.0.2", "10.1.0.3"));
    expect(offered(mesh, "bank")).toBe(before);
  });

  it("keep their identity where a rule for another host changes", () => {
    const mesh = meshFrom(HEADER + WEB);
    const before = offered(mesh, "web-1").resources;
    put(mesh, rule("api.test", "{connectionPool: {tcp: {maxConnections: 1}}}"));
    const after = offered(mesh, "web-1").resources;
    expect([...after].filter(([name, resource]) => before.get(name) !== resource).map(([name]) => name)).toEqual(["outbound|80||api.test"]);
  });

  it("name the assignments they will ask for", () => {
    const mesh = meshFrom(HEADER + WEB);
    const { resources } = offered(mesh, "web-1");
    const asked = [...resources.values()].flatMap((resource) => provider(mesh).companion?.namesOf(resource) ?? []);
    expect(asked).toEqual([WEB_CLUSTER]);
  });

  it("of a proxy without an agent speak the TLS a rule demands, by files on its machine, and no mutual TLS of the mesh", () => {
    const set = offered(meshFrom(HEADER + WEB + rule("api.test", "{tls: {mode: SIMPLE}}")), "bare");
    const textOf = (name: string): string => Buffer.from(set.resources.get(name)?.body ?? []).toString("latin1");
    expect(textOf("outbound|80||api.test")).toContain("local-root://system");
    expect(textOf(WEB_CLUSTER)).not.toContain("ROOTCA");
  });

  it("say what they were made from", () => {
    const mesh = meshFrom(HEADER + WEB + rule("web", "{loadBalancer: {simple: RANDOM}}"));
    const view = mesh.proxies[0]?.view;
    if (view === undefined) throw new Error("no proxy");
    expect(provider(mesh).provenance(view, WEB_CLUSTER)).toEqual(["ServiceEntry/shop/web", "DestinationRule/shop/rule"]);
    expect(provider(mesh).provenance(view, "inbound|8080||")).toContain("ServiceEntry/shop/web");
    expect(provider(mesh).provenance(view, "BlackHoleCluster")).toEqual([]);
  });

  it("are prepared in steps that leave nothing to compute", () => {
    const mesh = meshFrom(HEADER + WEB);
    const view = mesh.proxies[0]?.view;
    if (view === undefined) throw new Error("no proxy");
    const steps = [...provider(mesh).prepare(view, { wildcard: true, names: createNameSets().of([]) })];
    expect(steps.length).toBeGreaterThan(2);
    const before = mesh.world.engine.stats().queries["clusters.outbound"]?.runs;
    offered(mesh, "web-1");
    expect(mesh.world.engine.stats().queries["clusters.outbound"]?.runs).toBe(before);
  });
});
