import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { type RegistryFixture, registryFixture } from "./registry-fixture.ts";

const SERVICES = 1000;
const ENDPOINTS = 10;
const hostOf = (i: number): string => `svc-${i}.test`;
const addressOf = (i: number, k: number): string => `10.${i >> 8}.${i & 255}.${k}`;

function entry(i: number, options: { readonly last?: string; readonly comment?: string; readonly port?: number } = {}): string {
  const endpoints = Array.from({ length: ENDPOINTS }, (_, k) => {
    const address = k === ENDPOINTS - 1 && options.last !== undefined ? options.last : addressOf(i, k);
    return `  - {address: ${address}, labels: {app: svc-${i}}, serviceAccount: svc-${i}}`;
  });
  return `
kind: ServiceEntry
metadata: {name: svc-${i}, namespace: ns-${i % 10}}
spec: # ${options.comment ?? ""}
  hosts: [${hostOf(i)}]
  ports: [{number: ${options.port ?? 80}, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints:
${endpoints.join("\n")}
---
`;
}

/** Asks for everything, as a control plane with a proxy at every endpoint would. */
function askAll({ registry }: RegistryFixture): void {
  for (const namespace of registry.namespaces()) {
    for (const ref of registry.servicesIn(namespace)) {
      for (const { number } of registry.service(ref)?.ports ?? []) {
        registry.endpoints(ref, number);
        registry.serviceAccounts(ref, number);
      }
    }
  }
  for (let i = 0; i < SERVICES; i++) {
    for (let k = 0; k < ENDPOINTS; k++) {
      registry.instancesAt(addressOf(i, k), `ns-${i % 10}`);
      registry.workloadAt(addressOf(i, k), `ns-${i % 10}`);
    }
  }
}

describe(`re-runs among ${SERVICES} services with ${ENDPOINTS} endpoints each`, () => {
  const world = registryFixture(Array.from({ length: SERVICES }, (_, i) => entry(i)).join(""));
  askAll(world);
  const runsAfter = (yaml: string): Readonly<Record<string, number>> =>
    world.runs(() => {
      world.put(yaml);
      askAll(world);
    });

  it("nothing changed: nothing runs", () => {
    assert.deepEqual(runsAfter(entry(7, { comment: "a remark" })), {});
  });

  it("one endpoint: its service's queries, and the addresses of that service", () => {
    const ref = { namespace: "ns-7", host: hostOf(7) };
    const [before, other] = [world.registry.service(ref), world.registry.endpoints({ namespace: "ns-8", host: hostOf(8) }, 80)];
    assert.deepEqual(runsAfter(entry(7, { last: "10.200.0.1" })), {
      "registry.declaration": 1,
      "registry.members": 1,
      "registry.endpoints": 1,
      "registry.serviceAccounts": 1,
      "registry.served": 1,
      "registry.instancesAt": ENDPOINTS,
      "registry.workloadAt": ENDPOINTS,
    });
    assert.equal(world.registry.service(ref), before);
    assert.equal(world.registry.endpoints({ namespace: "ns-8", host: hostOf(8) }, 80), other);
    assert.equal(world.registry.instancesAt("10.200.0.1", "ns-7").length, 1);
  });

  it("one port: the service too, and the list of its namespace, which comes out the same", () => {
    const runs = runsAfter(entry(7, { last: "10.200.0.1", port: 81 }));
    assert.equal(runs["registry.service"], 1);
    assert.equal(runs["registry.catalog"], 1);
    assert.equal(runs["registry.servicesIn"], undefined);
    assert.equal(runs["registry.autoAddressSlots"], undefined);
  });

  it("one service more: nothing behind the others", () => {
    const runs = runsAfter(entry(SERVICES));
    assert.equal(runs["registry.service"], 1);
    assert.equal(runs["registry.endpoints"], 1);
    assert.equal(runs["registry.catalog"], 1);
    assert.equal(runs["registry.autoAddressSlots"], 1);
    assert.ok((runs["registry.autoAddresses"] ?? 0) < SERVICES / 20, `${runs["registry.autoAddresses"]} addresses looked up again`);
    assert.equal(runs["registry.instancesAt"], undefined);
  });

  it("mesh-wide configuration that nobody here reads: nothing but the reads of it", () => {
    const mesh = world.inputs.mesh.get("mesh");
    assert.ok(mesh !== undefined);
    const runs = world.runs(() => {
      world.inputs.mesh.set("mesh", { ...mesh, trustDomain: "other" });
      askAll(world);
    });
    assert.deepEqual(runs, { "registry.defaultExportTo": 1, "registry.visibilitySettings": 1 });
  });
});

describe("re-runs with Kubernetes objects", () => {
  const pod = (i: number, ready: string): string => `
kind: Pod
metadata: {name: web-${i}, labels: {app: web}}
spec: {nodeName: n1, containers: [{ports: [{name: http, containerPort: 8080}]}]}
status: {podIP: 10.1.0.${i}, phase: Running, conditions: [{type: Ready, status: "${ready}"}]}
---
`;
  const world = registryFixture(`
{kind: Node, metadata: {name: n1}}
---
{kind: Service, metadata: {name: web}, spec: {clusterIP: 10.96.0.1, selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}]}}
---
{kind: Service, metadata: {name: other}, spec: {clusterIP: 10.96.0.2, selector: {app: other}, ports: [{name: http, port: 80}]}}
---
${Array.from({ length: 9 }, (_, i) => pod(i + 1, "True")).join("")}`);
  const ask = (): void => {
    for (const ref of world.registry.servicesIn("shop")) world.registry.endpoints(ref, 80);
    for (let i = 1; i < 10; i++) world.registry.workloadAt(`10.1.0.${i}`, "shop");
  };
  ask();

  it("a pod that changes re-runs itself and the services that select it", () => {
    const runs = world.runs(() => {
      world.put(pod(3, "False"));
      ask();
    });
    assert.deepEqual(runs, { "registry.workload": 1, "registry.members": 1, "registry.endpoints": 1, "registry.workloadAt": 1 });
  });

  it("a pod more re-runs only the services whose labels it carries", () => {
    const runs = world.runs(() => {
      world.put(pod(10, "True"));
      ask();
    });
    assert.deepEqual(runs, { "registry.workload": 1, "registry.members": 1, "registry.endpoints": 1 });
  });

  it("a node that changes its locality re-runs its pods", () => {
    const runs = world.runs(() => {
      world.put("{kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/region: eu}}}");
      ask();
    });
    assert.equal(runs["registry.nodeLocality"], 1);
    assert.equal(runs["registry.workload"], 10);
    assert.equal(runs["registry.endpoints"], 1);
  });
});
