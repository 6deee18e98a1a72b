import assert from "node:assert/strict";
import { fromBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, it } from "vitest";
import { holds } from "../../../test/support/holds.ts";
import { meshFrom } from "../../../test/support/mesh-from.ts";
import { RouteConfigurationSchema } from "../../gen/envoy/config/route/v3/route_pb.js";
import { ROUTE_TYPE } from "../../wire/type-urls.ts";

/** Domains of each host of the table of port 80, by host, for a proxy in each namespace. */
async function tablesOf(
  services: readonly string[],
  namespaces: readonly string[],
): Promise<ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>> {
  const proxies = namespaces.map((namespace) => `- {name: ${namespace}, namespace: ${namespace}, address: 10.9.0.1}`).join("\n");
  const mesh = meshFrom([`proxies:\n${proxies}\n`, ...services].join("---\n"));
  const tables = new Map<string, ReadonlyMap<string, readonly string[]>>();
  for (const proxy of mesh.proxies) {
    const table = (await mesh.resources(proxy)).get(ROUTE_TYPE)?.resources.get("80");
    assert.ok(table !== undefined);
    const { virtualHosts } = fromBinary(RouteConfigurationSchema, table.body);
    tables.set(proxy.name, new Map(virtualHosts.map(({ name, domains }) => [name, domains])));
  }
  return tables;
}

let addresses = 0;
const entry = (namespace: string, name: string, host: string): string => {
  addresses += 1;
  return `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: ${name}, namespace: ${namespace}}
spec: {hosts: [${host}], addresses: [240.1.${addresses >> 8}.${addresses & 255}], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC}
`;
};
const inCluster = (namespace: string, name: string): string => entry(namespace, name, `${name}.${namespace}.svc.cluster.local`);

describe("plans of route tables", () => {
  it("give a service its short name in its own namespace only", async () => {
    const tables = await tablesOf([inCluster("shop", "web"), inCluster("bank", "web")], ["shop", "bank", "other"]);
    const short = (namespace: string): readonly string[] =>
      [...(tables.get(namespace) ?? [])].filter(([, domains]) => domains.includes("web")).map(([name]) => name);
    assert.deepEqual(short("shop"), ["web.shop.svc.cluster.local:80"]);
    assert.deepEqual(short("bank"), ["web.bank.svc.cluster.local:80"]);
    assert.deepEqual(short("other"), []);
  });

  it("leave a short name to the host that is called so", async () => {
    const tables = await tablesOf([inCluster("shop", "web"), entry("other", "plain", "web")], ["shop", "other"]);
    for (const [namespace, table] of tables) {
      const called = [...table].filter(([, domains]) => domains.includes("web"));
      assert.equal(called.length, 1, namespace);
    }
    assert.ok(tables.get("shop")?.has("web.shop.svc.cluster.local:80"));
  });

  it("name each domain once, and the full name of every service, whatever names there are", async () => {
    const label = fc.constantFrom("web", "api", "shop", "bank", "svc");
    const host = fc.oneof(
      label,
      fc.tuple(label, label).map((parts) => parts.join(".")),
      fc.tuple(label, label).map(([name, ns]) => `${name}.${ns}.svc.cluster.local`),
    );
    await holds(
      fc.asyncProperty(fc.uniqueArray(host, { minLength: 1, maxLength: 8 }), async (hosts) => {
        const services = hosts.map((one, index) => entry(index % 2 === 0 ? "shop" : "bank", `e${index}`, one));
        for (const [namespace, table] of await tablesOf(services, ["shop", "bank", "web"])) {
          const domains = [...table.values()].flat();
          assert.equal(new Set(domains).size, domains.length, namespace);
          for (const one of hosts) assert.ok(domains.includes(one), `${one} in ${namespace}`);
        }
      }),
      { numRuns: 40 },
    );
  });
});
