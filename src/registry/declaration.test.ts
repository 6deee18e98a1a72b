import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { Service } from "../model/service.ts";
import { registryFixture } from "./registry-fixture.ts";

const api = { namespace: "shop", host: "api.test" };

interface Entry {
  readonly name: string;
  readonly namespace?: string;
  readonly created?: string;
  readonly host?: string;
  readonly port?: number;
  readonly resolution?: string;
  readonly address?: string;
  readonly vip?: string;
  readonly exportTo?: string;
}

const entry = ({
  name,
  namespace = "shop",
  created = "2026-01-01",
  host = "api.test",
  port = 80,
  resolution = "STATIC",
  address,
  vip,
  exportTo = "*",
}: Entry): string => `
kind: ServiceEntry
metadata: {name: ${name}, namespace: ${namespace}, creationTimestamp: "${created}"}
spec:
  hosts: [${host}]
  exportTo: ["${exportTo}"]
  addresses: [${vip ?? ""}]
  ports: [{number: ${port}, name: http-${port}, protocol: HTTP}]
  resolution: ${resolution}
  endpoints: [${address === undefined ? "" : `{address: ${address}}`}]
---
`;

const portsOf = (service: Service | undefined): readonly number[] => service?.ports.map(({ number }) => number) ?? [];

describe("one host declared more than once", () => {
  for (const [age, created] of [
    ["younger", "2026-02-02"],
    ["older", "2025-02-02"],
  ] as const) {
    it(`what is exported otherwise is another service, ${age} or not: nobody sees through one of them what another keeps to itself`, () => {
      const { registry } = registryFixture(
        entry({ name: "open", port: 80, address: "10.0.0.1" }) +
          entry({ name: "closed", created, port: 81, address: "10.0.0.2", exportTo: "." }),
      );
      const own = { ...api, edition: "ServiceEntry/shop/closed,ServiceEntry/shop/open" };
      assert.deepEqual(registry.servicesIn("shop"), [api, own]);
      assert.deepEqual(portsOf(registry.service(api)), [80]);
      assert.deepEqual(registry.endpoints(api, 81), []);
      assert.deepEqual(portsOf(registry.service(own)), [81, 80]);
      assert.deepEqual(registry.service(own)?.exportTo, ["."]);
      assert.deepEqual(registry.endpoints(own, 81).length + registry.endpoints(own, 80).length, 2);
    });
  }

  it("workloads serve all of it, whoever sees it", () => {
    const { registry } = registryFixture(
      entry({ name: "open", port: 80, address: "10.0.0.1" }) + entry({ name: "hidden", port: 81, address: "10.0.0.1", exportTo: "~" }),
    );
    assert.deepEqual(
      registry.instancesAt("10.0.0.1", "shop").map(({ servicePort }) => servicePort.number),
      [80, 81],
    );
  });

  it("namespaces that see the same share a service", () => {
    const { registry } = registryFixture(
      entry({ name: "open", port: 80, address: "10.0.0.1" }) +
        entry({ name: "some", port: 81, address: "10.0.0.2", exportTo: 'east", "west' }) +
        entry({ name: "one", port: 82, address: "10.0.0.3", exportTo: "west" }),
    );
    assert.deepEqual(
      registry.servicesByHost("api.test").map((ref) => [registry.service(ref)?.exportTo, portsOf(registry.service(ref))]),
      [
        [["west"], [82, 81, 80]],
        [["*"], [80]],
        [["east"], [81, 80]],
      ],
    );
  });

  it("a ServiceEntry beside a Kubernetes Service adds its endpoints for all who see the Service", () => {
    const kubernetes = `
kind: Service
metadata: {name: api, namespace: shop}
spec: {clusterIP: 10.9.0.1, ports: [{name: http-80, port: 80}]}
---
`;
    const host = "api.shop.svc.cluster.local";
    const { registry } = registryFixture(kubernetes + entry({ name: "machines", host, address: "10.0.0.2", exportTo: "." }));
    assert.deepEqual(registry.servicesByHost(host), [{ namespace: "shop", host }]);
    assert.equal(registry.endpoints({ namespace: "shop", host }, 80).length, 1);
  });

  it("the oldest ServiceEntry decides; ports, addresses and endpoints of others that resolve alike are added", () => {
    const { registry } = registryFixture(
      entry({ name: "young", created: "2026-02-02", port: 81, address: "10.0.0.2", vip: "10.9.0.2" }) +
        entry({ name: "old", port: 80, address: "10.0.0.1", vip: "10.9.0.1" }) +
        entry({ name: "third", created: "2026-03-03", port: 80, address: "10.0.0.3" }) +
        entry({ name: "unlike", created: "2026-03-03", port: 82, resolution: "DNS", address: "x.test" }),
    );
    const service = registry.service(api);
    assert.deepEqual(
      service?.ports.map(({ number }) => number),
      [80, 81],
    );
    assert.deepEqual(service?.addresses, ["10.9.0.1", "10.9.0.2"]);
    assert.equal(service?.objectKey, "ServiceEntry/shop/old");
    assert.deepEqual(
      registry.endpoints(api, 80).map(({ address }) => address),
      ["10.0.0.1", "10.0.0.3"],
    );
    assert.deepEqual(
      registry.endpoints(api, 81).map(({ address }) => address),
      ["10.0.0.2"],
    );
    assert.deepEqual(registry.endpoints(api, 82), []);
    assert.deepEqual(registry.servicesIn("shop"), [api]);
  });

  it("the name decides between entries of one age, and an address counts once", () => {
    const { registry } = registryFixture(entry({ name: "b", address: "10.0.0.1" }) + entry({ name: "a", address: "10.0.0.1" }));
    assert.equal(registry.service(api)?.name, "a");
    assert.deepEqual(
      registry.endpoints(api, 80).map(({ workload }) => workload),
      ["a-0"],
    );
  });

  it("a Kubernetes Service wins over a ServiceEntry, which adds its endpoints", () => {
    const host = "web.shop.svc.cluster.local";
    const { registry, remove } = registryFixture(`
{kind: Service, metadata: {name: web, creationTimestamp: "2026-05-05"}, spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 80}]}}
---
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
ports: [{name: http, port: 80}]
endpoints: [{addresses: [10.1.0.1]}]
---
${entry({ name: "vms", host, address: "10.2.0.1" })}
${entry({ name: "more", host, port: 81, address: "10.2.0.2" })}`);
    const ref = { namespace: "shop", host };
    assert.equal(registry.service(ref)?.source, "Kubernetes");
    assert.deepEqual(
      registry.service(ref)?.ports.map(({ number }) => number),
      [80],
    );
    assert.deepEqual(
      registry.endpoints(ref, 80).map(({ address }) => address),
      ["10.1.0.1", "10.2.0.1"],
    );
    remove("Service/shop/web");
    assert.equal(registry.service(ref)?.source, "External");
    assert.deepEqual(
      registry.endpoints(ref, 80).map(({ address }) => address),
      ["10.2.0.1"],
    );
  });

  it("namespaces come in order of precedence", () => {
    const host = "web.shop.svc.cluster.local";
    const { registry } = registryFixture(`
{kind: Service, metadata: {name: web, creationTimestamp: "2026-05-05"}, spec: {clusterIP: 10.96.0.1}}
---
${entry({ name: "a", namespace: "aaa", created: "2026-03-03", host })}${entry({ name: "b", namespace: "bbb", created: "2026-02-02", host })}`);
    assert.deepEqual(
      registry.servicesByHost(host).map(({ namespace }) => namespace),
      ["shop", "bbb", "aaa"],
    );
    assert.deepEqual(registry.servicesByHost("nobody.test"), []);
  });
});

describe("addresses for hosts that have none", () => {
  const auto = (text: string) => registryFixture(text).registry.service(api)?.autoAddresses;

  it("are given for STATIC and DNS, in both families", () => {
    const [v4, v6, ...more] = auto(entry({ name: "a" })) ?? [];
    assert.match(v4 ?? "", /^240\.240\.\d+\.\d+$/);
    assert.match(v6 ?? "", /^2001:2::[0-9a-f]+$/);
    assert.deepEqual(more, []);
    assert.equal(auto(entry({ name: "a", resolution: "DNS" }))?.length, 2);
  });

  it("are not given where there is one already, for NONE, for a wildcard, or where a label forbids it", () => {
    assert.deepEqual(auto(entry({ name: "a", vip: "10.0.0.1" })), []);
    assert.deepEqual(auto(entry({ name: "a", resolution: "NONE" })), []);
    assert.deepEqual(
      auto(entry({ name: "a" }).replace("name: a,", 'name: a, labels: {networking.istio.io/enable-autoallocate-ip: "false"},')),
      [],
    );
    const { registry } = registryFixture(entry({ name: "a", host: '"*.test"' }));
    assert.deepEqual(registry.service({ namespace: "shop", host: "*.test" })?.autoAddresses, []);
  });

  it("a Service that nobody gave a cluster address gets one too", () => {
    const { registry } = registryFixture("{kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}");
    assert.equal(registry.service({ namespace: "shop", host: "web.shop.svc.cluster.local" })?.autoAddresses.length, 2);
  });
});
