import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { matchesLabels } from "../base/labels.ts";
import type { ServiceSpec } from "../config/kinds/service/service.ts";
import type { ServiceInstance } from "../model/endpoint.ts";
import { type RegistryFixture, registryFixture } from "./registry-fixture.ts";

const NAMESPACES = ["shop", "bank"] as const;
const ADDRESSES = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1"] as const;
const HOSTS = ["a.test", "*.b.test", "web.shop.svc.cluster.local"] as const;

const namespace = fc.constantFrom(...NAMESPACES);
const address = fc.constantFrom(...ADDRESSES);
const label = fc.constantFrom("{app: web}", "{app: web, tier: x}", "{app: api}", "{}");
const name = fc.constantFrom("web", "one", "two");

const serviceEntry = (exports: readonly string[]) =>
  fc
    .record({
      exportTo: fc.constantFrom(...exports),
      hosts: fc.uniqueArray(fc.constantFrom(...HOSTS), { minLength: 1 }),
      resolution: fc.constantFrom("NONE", "STATIC", "DNS"),
      port: fc.constantFrom(80, 81),
      vip: fc.boolean(),
      endpoints: fc.array(fc.tuple(address, label), { maxLength: 3 }),
      selector: fc.option(label),
      created: fc.constantFrom("2026-01-01", "2026-02-02"),
    })
    .map((entry) => ({
      kind: "ServiceEntry",
      meta: `creationTimestamp: "${entry.created}"`,
      body: `spec:
  hosts: ${JSON.stringify(entry.hosts)}
  exportTo: ["${entry.exportTo}"]
  addresses: [${entry.vip ? "10.9.9.9" : ""}]
  resolution: ${entry.resolution}
  ports: [{number: ${entry.port}, name: http, protocol: HTTP}]
  endpoints: [${entry.endpoints.map(([ip, labels]) => `{address: "${ip}", labels: ${labels}}`).join(", ")}]${entry.selector === null ? "" : `\n  workloadSelector: {labels: ${entry.selector}}`}`,
    }));
const workloadEntry = fc.tuple(address, label, fc.boolean()).map(([ip, labels, grouped]) => ({
  kind: "WorkloadEntry",
  meta: grouped ? "annotations: {istio.io/autoRegistrationGroup: web}" : "annotations: {}",
  body: `spec: {address: "${ip}", labels: ${labels}}`,
}));
const workloadGroup = label.map((labels) => ({
  kind: "WorkloadGroup",
  meta: "labels: {}",
  body: `spec: {metadata: {labels: ${labels}}, template: {serviceAccount: vm}}`,
}));
const service = fc.tuple(label, fc.constantFrom("10.96.0.1", "None", "")).map(([selector, ip]) => ({
  kind: "Service",
  meta: "labels: {}",
  body: `spec: {clusterIP: "${ip}", selector: ${selector}, ports: [{name: http, port: 80, targetPort: 8080}]}`,
}));
const pod = fc.tuple(address, label, fc.constantFrom("True", "False")).map(([ip, labels, ready]) => ({
  kind: "Pod",
  meta: `labels: ${labels}`,
  body: `spec: {nodeName: n1}\nstatus: {podIP: "${ip}", conditions: [{type: Ready, status: "${ready}"}]}`,
}));
const slice = fc.tuple(name, fc.array(address, { maxLength: 3 })).map(([owner, ips]) => ({
  kind: "EndpointSlice",
  meta: `labels: {kubernetes.io/service-name: ${owner}}`,
  body: `ports: [{name: http, port: 8080}]\nendpoints: [${ips.map((ip) => `{addresses: ["${ip}"]}`).join(", ")}]`,
}));
const node = fc
  .constantFrom("eu", "us")
  .map((region) => ({ kind: "Node", meta: `labels: {topology.kubernetes.io/region: ${region}}`, body: "" }));

const editOf = (exports: readonly string[]) => {
  const content = fc.oneof({ weight: 4, arbitrary: serviceEntry(exports) }, workloadEntry, workloadGroup, service, pod, slice, node);
  return fc.record({ namespace, name, content, remove: fc.boolean() });
};
const edit = editOf(["*", ".", "bank", "~"]);
/** Edits that leave all services visible to everybody: each is one service. */
const openEdit = editOf(["*"]);

/** Everything the registry says, as data. */
function everything({ registry }: RegistryFixture): unknown {
  const refs = NAMESPACES.flatMap((one) => registry.servicesIn(one));
  return {
    namespaces: registry.namespaces(),
    services: refs.map((ref) => [
      ref,
      registry.service(ref),
      [80, 81].map((port) => [registry.endpoints(ref, port), registry.serviceAccounts(ref, port)]),
    ]),
    hosts: HOSTS.map((host) => registry.servicesByHost(host)),
    addresses: NAMESPACES.flatMap((one) => ADDRESSES.map((ip) => [registry.instancesAt(ip, one), registry.workloadAt(ip, one)])),
  };
}

/** Hosts of the Services that select the first pod at an address: what it serves of those is for its Service to say. */
function hostsOfPod({ inputs }: RegistryFixture, at: string, inNamespace: string): ReadonlySet<string> {
  const pod = inputs.objects.keys("address", `${inNamespace}/${at}`).find((key) => key.startsWith("Pod/"));
  const labels = pod === undefined ? undefined : inputs.objects.get(pod)?.labels;
  const services = labels === undefined ? [] : inputs.objects.list("kindNamespace", `Service/${inNamespace}`);
  return new Set(
    services
      .filter(({ spec }) => {
        const { selector } = spec as ServiceSpec;
        return Object.keys(selector).length > 0 && matchesLabels(selector, labels ?? {});
      })
      .map(({ name: service }) => `${service}.${inNamespace}.svc.cluster.local`),
  );
}

/** What `instancesAt` must say of other services, found by looking at every endpoint of every service of the namespace. */
function instancesTheLongWay({ registry }: RegistryFixture, at: string, inNamespace: string): readonly ServiceInstance[] {
  return registry.servicesIn(inNamespace).flatMap((ref) =>
    (registry.service(ref)?.ports ?? [])
      .toSorted((a, b) => a.number - b.number)
      .flatMap(({ name: portName, number }) =>
        registry
          .endpoints(ref, number)
          .filter((endpoint) => endpoint.address === at)
          .map((endpoint) => ({ service: ref, servicePort: { name: portName, number }, endpoint })),
      ),
  );
}

const yamlOf = ({
  namespace: ns,
  name: id,
  content: { kind, meta, body },
}: {
  namespace: string;
  name: string;
  content: { kind: string; meta: string; body: string };
}): string => `kind: ${kind}\nmetadata: {name: ${kind === "Node" ? "n1" : id}, namespace: ${ns}, ${meta}}\n${body}\n---\n`;

describe("the registry", () => {
  it("after any edits says what it would say from scratch", () => {
    holds(
      fc.property(fc.array(edit, { maxLength: 25 }), fc.nat(3), (edits, every) => {
        const world = registryFixture();
        const held = new Map<string, string>();
        edits.forEach((one, i) => {
          const { kind } = one.content;
          const key = kind === "Node" ? "Node//n1" : `${kind}/${one.namespace}/${one.name}`;
          if (one.remove && held.delete(key)) {
            world.remove(key);
          } else {
            const yaml = yamlOf(one);
            held.set(key, yaml);
            world.put(yaml);
          }
          if (i % (every + 1) === 0) everything(world);
        });
        assert.deepEqual(everything(world), everything(registryFixture([...held.values()].join(""))));
      }),
      { numRuns: 150 },
    );
  });

  it("finds at an address exactly the endpoints that have it, and the ports of Services that select the pod there", () => {
    holds(
      fc.property(fc.array(openEdit, { minLength: 4, maxLength: 15 }), (edits) => {
        const world = registryFixture(edits.map(yamlOf).join(""));
        for (const one of NAMESPACES) {
          for (const at of ADDRESSES) {
            const own = hostsOfPod(world, at, one);
            const found = world.registry.instancesAt(at, one);
            const others = (instance: ServiceInstance): boolean => !own.has(instance.service.host);
            assert.deepEqual(found.filter(others), instancesTheLongWay(world, at, one).filter(others));
            assert.deepEqual(
              found.filter((instance) => !others(instance)).map(({ service: { host }, endpoint }) => `${host} ${endpoint.port}`),
              [...own].sort().map((host) => `${host} 8080`),
            );
          }
        }
      }),
      { numRuns: 150 },
    );
  });

  it("reads nothing that the engine cannot see", () => {
    holds(
      fc.property(fc.array(edit, { maxLength: 8 }), (edits) => {
        const world = registryFixture("", { recheck: true });
        for (const one of edits) {
          world.put(yamlOf(one));
          everything(world);
        }
      }),
      { numRuns: 30 },
    );
  });
});
