import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { addressesIn } from "../model/service.ts";
import { registryFixture } from "./registry-fixture.ts";

const service = (address: string, more = ""): string => `
kind: Service
metadata: {name: web}
spec: {clusterIP: ${address}, selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]${more}}
---
`;
const slice = (address: string, pod: string): string => `
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [${address}], targetRef: {kind: Pod, name: ${pod}}, nodeName: n1}]
---
`;
const pod = (address: string, account: string): string => `
kind: Pod
metadata: {name: web-x, labels: {app: web}}
spec: {nodeName: n1, serviceAccountName: ${account}, containers: []}
status: {podIP: ${address}, phase: Running}
---
`;
const node = (zone: string): string => `
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/region: eu, topology.kubernetes.io/zone: ${zone}}}
---
`;
const network = (name: string): string => `
kind: Namespace
metadata: {name: istio-system, labels: {topology.istio.io/network: ${name}}}
---
`;
const web = { namespace: "shop", host: "web.shop.svc.cluster.local" };

describe("services of several clusters", () => {
  const whole = () => {
    const fixture = registryFixture(
      service("10.96.0.1") + slice("10.1.0.1", "web-x") + pod("10.1.0.1", "here") + node("a") + network("n-here"),
      {
        recheck: true,
      },
    );
    fixture.put(service("10.96.9.9") + slice("10.1.0.1", "web-x") + pod("10.1.0.1", "there") + node("b") + network("n-there"), "west");
    return fixture;
  };

  it("have the endpoints of all, each with what its own cluster says, although addresses and names are the same", () => {
    const { registry } = whole();
    assert.deepEqual(
      registry.endpoints(web, 80).map((one) => [one.address, one.clusterId, one.serviceAccount, one.locality.zone, one.network]),
      [
        ["10.1.0.1", "Kubernetes", "here", "a", "n-here"],
        ["10.1.0.1", "west", "there", "b", "n-there"],
      ],
    );
    assert.deepEqual(registry.serviceAccounts(web, 80), ["shop/here", "shop/there"]);
  });

  it("are what this cluster says they are", () => {
    const { registry } = whole();
    assert.deepEqual(registry.service(web)?.addresses, ["10.96.0.1"]);
    assert.deepEqual(registry.servicesIn("shop"), [web]);
    assert.deepEqual(registry.servicesByHost(web.host), [web]);
  });

  it("are known by who is here where both have an address, else by who is elsewhere", () => {
    const { registry, put, remove } = whole();
    assert.equal(registry.workloadAt("10.1.0.1", "shop")?.serviceAccount, "here");
    remove("Pod/shop/web-x");
    remove("EndpointSlice/shop/web-1");
    assert.equal(registry.workloadAt("10.1.0.1", "shop")?.serviceAccount, "there");
    assert.deepEqual(
      registry.instancesAt("10.1.0.1", "shop").map(({ endpoint }) => endpoint.clusterId),
      ["west"],
    );
    put(pod("10.1.0.1", "here"));
    assert.equal(registry.workloadAt("10.1.0.1", "shop")?.serviceAccount, "here");
  });

  it("are served by each workload as its own cluster says, although another one has the same address", () => {
    const { registry, put } = whole();
    const accounts = (cluster = ""): readonly unknown[] => [
      registry.workloadAt("10.1.0.1", "shop", { cluster })?.serviceAccount,
      ...registry.instancesAt("10.1.0.1", "shop", { cluster }).map(({ endpoint }) => endpoint.serviceAccount),
    ];
    assert.deepEqual([accounts(), accounts("west"), accounts("east")], [["here", "here"], ["there", "there"], [undefined]]);
    assert.deepEqual(
      ["west", "east", ""].map((cluster) => registry.isRemote(cluster)),
      [true, false, false],
    );
    put(`{kind: WorkloadEntry, metadata: {name: vm, labels: {app: web}}, spec: {address: 10.1.0.1, serviceAccount: machine}}`);
    assert.equal(accounts("east")[0], "machine");
  });

  it("are served by a pod that the selector of its own cluster's Service takes, listed or not", () => {
    const { registry, put, remove } = whole();
    const accounts = (): readonly string[] =>
      registry.instancesAt("10.1.0.1", "shop", { cluster: "west" }).map(({ endpoint }) => endpoint.serviceAccount);
    remove("EndpointSlice/shop/web-1@west");
    assert.deepEqual(accounts(), ["there"]);
    put(service("10.96.9.9").replace("{app: web}", "{app: other}"), "west");
    assert.deepEqual(accounts(), []);
  });

  it("have an address of their own in each", () => {
    const { registry, put } = whole();
    const addresses = (): readonly unknown[] => {
      const found = registry.service(web) ?? assert.fail("no service");
      return [addressesIn(found, ""), addressesIn(found, "west"), addressesIn(found, "east")];
    };
    assert.deepEqual(addresses(), [["10.96.0.1"], ["10.96.9.9"], ["10.96.0.1"]]);
    put(service("10.96.9.8"), "west");
    assert.deepEqual(addresses()[1], ["10.96.9.8"]);
  });

  it("remain when they are elsewhere only, and go with the cluster", () => {
    const { registry, remove } = whole();
    remove("Service/shop/web");
    assert.deepEqual(
      [registry.service(web)?.addresses, registry.endpoints(web, 80).map(({ clusterId }) => clusterId)],
      [["10.96.9.9"], ["west"]],
    );
    remove("Service/shop/web@west");
    assert.equal(registry.service(web), undefined);
  });

  it("go together only where both are headless or neither is", () => {
    const { registry, put } = whole();
    put(service("None"), "west");
    assert.deepEqual(
      registry.endpoints(web, 80).map(({ clusterId }) => clusterId),
      ["Kubernetes"],
    );
    put(service("None"));
    assert.deepEqual(
      registry.endpoints(web, 80).map(({ clusterId }) => clusterId),
      ["Kubernetes", "west"],
    );
  });

  it("have machines of their own cluster behind them; a ServiceEntry those of all", () => {
    const { registry, put, remove } = whole();
    const entry = (address: string): string => `
kind: WorkloadEntry
metadata: {name: vm, labels: {app: web}}
spec: {address: ${address}, serviceAccount: vm}
---
`;
    put(entry("10.8.0.1"));
    put(entry("10.8.0.2"), "west");
    const found = (ref = web): readonly unknown[] =>
      registry.endpoints(ref, 80).map(({ address, clusterId, network: named }) => [address, clusterId, named]);
    assert.deepEqual(found(), [
      ["10.1.0.1", "Kubernetes", "n-here"],
      ["10.8.0.1", "Kubernetes", ""],
      ["10.1.0.1", "west", "n-there"],
      ["10.8.0.2", "west", "n-there"],
    ]);
    put(`
kind: ServiceEntry
metadata: {name: all}
spec: {hosts: [all.example.com], ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}], resolution: STATIC, location: MESH_INTERNAL, workloadSelector: {labels: {app: web}}}
`);
    const all = { namespace: "shop", host: "all.example.com" };
    const clusters = (): readonly string[] => registry.endpoints(all, 80).map(({ address, clusterId }) => `${address}@${clusterId}`);
    assert.deepEqual(clusters(), ["10.8.0.1@Kubernetes", "10.8.0.2@west", "10.1.0.1@Kubernetes", "10.1.0.1@west"]);
    remove("WorkloadEntry/shop/vm@west");
    remove("Pod/shop/web-x@west");
    assert.deepEqual(clusters(), ["10.8.0.1@Kubernetes", "10.1.0.1@Kubernetes"]);
  });
});
