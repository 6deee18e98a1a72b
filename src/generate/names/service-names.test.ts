import assert from "node:assert/strict";
import { describe, it } from "vitest";
import type { Endpoint } from "../../model/endpoint.ts";
import { NO_LOCALITY } from "../../model/locality.ts";
import type { Service } from "../../model/service.ts";
import { namesOf, type ResolverTraits } from "./service-names.ts";

const HEADLESS = {
  namespace: "shop",
  host: "db.shop.svc.cluster.local",
  name: "db",
  source: "Kubernetes",
  ports: [{ name: "tcp", number: 5432, protocol: "TCP" }],
  addresses: [],
  autoAddresses: [],
  resolution: "none",
  headless: true,
} as unknown as Service;

const endpoint = (address: string, fields: Partial<Endpoint> = {}): Endpoint => ({
  address,
  unixPath: false,
  port: 5432,
  servicePort: "tcp",
  labels: {},
  namespace: "shop",
  workload: "",
  serviceAccount: "",
  network: "",
  clusterId: "here",
  nodeName: "",
  hostname: "",
  subdomain: "",
  locality: NO_LOCALITY,
  weight: 1,
  tlsMode: "disabled",
  health: "healthy",
  objectKey: "",
  ...fields,
});

const TRAITS: ResolverTraits = { autoAddresses: true, families: [4], network: "near", clusterId: "here", remoteCluster: "" };

const ips = (endpoints: readonly Endpoint[], traits = TRAITS): Readonly<Record<string, readonly string[]>> =>
  Object.fromEntries(namesOf(HEADLESS, traits, () => endpoints).map((entry) => [entry.host, entry.ips]));

describe("names of a headless service", () => {
  it("resolve to endpoints that are healthy and can be reached, each address once", () => {
    const found = ips([
      endpoint("10.1.0.1"),
      endpoint("10.1.0.1", { port: 9187 }),
      endpoint("10.1.0.2", { health: "unhealthy" }),
      endpoint("10.1.0.3", { health: "draining" }),
      endpoint("10.1.0.4", { network: "far" }),
      endpoint("10.1.0.5", { network: "near", clusterId: "there" }),
      endpoint("db.example.com"),
    ]);
    assert.deepEqual(found, { "db.shop.svc.cluster.local": ["10.1.0.1", "10.1.0.5"] });
    assert.deepEqual(ips([]), {});
  });

  it("name pods too; of several clusters the own one is meant, another only where the own has none", () => {
    const pod = (address: string, hostname: string, clusterId: string) => endpoint(address, { hostname, subdomain: "db", clusterId });
    const found = ips([pod("10.1.0.1", "db-0", "there"), pod("10.2.0.1", "db-0", "here"), pod("10.1.0.2", "db-1", "there")]);
    assert.deepEqual(found, {
      "db.shop.svc.cluster.local": ["10.1.0.1", "10.2.0.1", "10.1.0.2"],
      "db-0.db.shop.svc.cluster.local": ["10.2.0.1"],
      "db-1.db.shop.svc.cluster.local": ["10.1.0.2"],
    });
  });
});

describe("names of other services", () => {
  const of = (fields: Partial<Service>, traits: Partial<ResolverTraits> = {}) =>
    namesOf({ ...HEADLESS, headless: false, resolution: "static", ...fields }, { ...TRAITS, ...traits }, () =>
      assert.fail("endpoints are nobody's business"),
    );

  it("resolve to what a cluster gave them in families the workload has, and to all that a user wrote", () => {
    const addresses = ["10.96.0.1", "fd00::1", "10.5.0.0/16"];
    assert.deepEqual(of({ addresses })[0]?.ips, ["10.96.0.1"]);
    assert.deepEqual(of({ addresses }, { families: [4, 6] })[0]?.ips, ["10.96.0.1", "fd00::1"]);
    assert.deepEqual(of({ addresses, source: "External" })[0]?.ips, ["10.96.0.1", "fd00::1"]);
    assert.deepEqual(of({ addresses: ["fd00::1"] }), []);
    assert.deepEqual(of({ addresses: ["10.5.0.0/16"], source: "External" }), []);
  });

  it("resolve to addresses we gave them where DNS is captured", () => {
    const given = { source: "External", resolution: "dns", autoAddresses: ["240.240.0.1", "2001:2::1"] } as const;
    assert.deepEqual(of(given)[0]?.ips, ["240.240.0.1"]);
    assert.deepEqual(of(given, { autoAddresses: false }), []);
  });

  it("have short forms in Kubernetes alone, and not where other clusters export them", () => {
    const short = (fields: Partial<Service>) => {
      const [entry] = of({ addresses: ["10.96.0.1"], ...fields });
      return [entry?.registry, entry?.shortname, entry?.namespace];
    };
    assert.deepEqual(short({}), ["Kubernetes", "db", "shop"]);
    assert.deepEqual(short({ source: "External" }), ["External", "", ""]);
    assert.deepEqual(short({ host: "db.shop.svc.clusterset.local" }), ["Kubernetes", "", ""]);
  });
});
