import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { registryFixture } from "./registry-fixture.ts";
import { DISTRIBUTION_ANNOTATION, trafficDistributionOf } from "./traffic-distribution.ts";

describe("trafficDistributionOf", () => {
  const table: readonly [field: string, own: string, namespace: string, want: string][] = [
    ["", "", "", "any"],
    ["PreferClose", "", "", "preferClose"],
    ["PreferSameZone", "", "", "preferClose"],
    ["PreferSameNode", "", "PreferClose", "preferSameNode"],
    ["PreferClose", "PreferSameNode", "", "preferClose"],
    ["PreferClose", "Any", "", "preferClose"],
    ["", "prefersamenode", "PreferClose", "preferSameNode"],
    ["", "Any", "PreferClose", "any"],
    ["", "", "PreferSameZone", "preferClose"],
    ["", "", "nonsense", "any"],
  ];
  for (const [field, own, namespace, want] of table) {
    it(`field ${field || "-"}, annotation ${own || "-"}, namespace ${namespace || "-"}: ${want}`, () => {
      const annotations: Readonly<Record<string, string>> = own === "" ? {} : { [DISTRIBUTION_ANNOTATION]: own };
      assert.equal(trafficDistributionOf({ field, annotations, namespace }), want);
    });
  }

  it("follows the annotation of the namespace, for Services and ServiceEntries", () => {
    const namespace = (value: string): string => `
kind: Namespace
metadata: {name: shop, annotations: {${DISTRIBUTION_ANNOTATION}: ${value}}}
`;
    const { registry, put } = registryFixture(`
kind: Service
metadata: {name: web}
spec: {clusterIP: 10.96.0.1, ports: [{name: http, port: 80}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: api}
spec: {hosts: [api.example.com], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}
---
${namespace("PreferClose")}`);
    const distributions = (): readonly (string | undefined)[] =>
      ["web.shop.svc.cluster.local", "api.example.com"].map((host) => registry.service({ namespace: "shop", host })?.trafficDistribution);
    assert.deepEqual(distributions(), ["preferClose", "preferClose"]);
    put(namespace("PreferSameNode"));
    assert.deepEqual(distributions(), ["preferSameNode", "preferSameNode"]);
  });
});
