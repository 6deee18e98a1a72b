import { create, type JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { meshFrom } from "../../test/support/mesh-from.ts";
import { NodeSchema } from "../gen/envoy/config/core/v3/base_pb.js";
import { readNode } from "./proxy-view.ts";

const LOGGER = "envoy.extensions.access_loggers.stats.v3.Config";

function counts(metadata: Record<string, string>, types: readonly string[]): boolean | undefined {
  const extensions = types.map((type) => ({ name: type, category: "envoy.access_loggers", typeUrls: [type] }));
  const facts = readNode(create(NodeSchema, { id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local", metadata, extensions }));
  return "refused" in facts ? undefined : facts.view.metadata.standardMetrics;
}

describe("standard metrics are counted", () => {
  it("by proxies that say so and whose Envoy has what counts, or says nothing of what it has", () => {
    expect(counts({ STANDARD_METRICS: "true" }, [])).toBe(true);
    expect(counts({ STANDARD_METRICS: "true" }, ["envoy.extensions.access_loggers.file.v3.FileAccessLog", LOGGER])).toBe(true);
    expect(counts({ STANDARD_METRICS: "true" }, ["envoy.extensions.access_loggers.file.v3.FileAccessLog"])).toBe(false);
    expect(counts({}, [LOGGER])).toBe(false);
  });
});

describe("a node", () => {
  it("is the same, in whatever order its metadata stands", () => {
    const read = (metadata: JsonObject) =>
      readNode(create(NodeSchema, { id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local", metadata }));
    expect(JSON.stringify(read({ LABELS: { b: "1", a: "2" }, NAME: "web" }))).toBe(
      JSON.stringify(read({ NAME: "web", LABELS: { a: "2", b: "1" } })),
    );
  });
});

describe("the labels of a proxy", () => {
  const MESH = (staticLabels: string): string => `
proxies:
- {name: known, namespace: shop, address: 10.1.0.1, labels: {app: said}, STATIC_LABELS: ${staticLabels}}
- {name: unknown, namespace: shop, address: 10.1.0.2, labels: {app: said}, STATIC_LABELS: ${staticLabels}}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: web, namespace: shop}
spec: {address: 10.1.0.1, labels: {app: web}}
`;

  it("are those of its object, with static ones that it does not have; else what it says itself", () => {
    const labels = (text: string) => meshFrom(MESH(text)).proxies.map(({ view }) => view.labels);
    const [known, unknown] = labels("{team: red, app: other}");
    expect(known).toMatchObject({ app: "web", team: "red" });
    expect(unknown).toEqual({ app: "said" });
    expect(labels("{}")[0]).not.toHaveProperty("team");
  });
});

describe("node metadata", () => {
  const viewOf = (metadata: Record<string, string | number>) => {
    const facts = readNode(create(NodeSchema, { id: "sidecar~10.0.0.1~web.shop~shop.svc.cluster.local", metadata }));
    return "refused" in facts ? undefined : facts.view;
  };
  const metadataOf = (metadata: Record<string, string | number>) => viewOf(metadata)?.metadata;

  it("says all addresses; where it says none, or something else, the one in the id counts", () => {
    const addresses = (INSTANCE_IPS: string): readonly string[] | undefined => viewOf({ INSTANCE_IPS })?.addresses;
    expect(addresses("fd00::1,10.1.0.7")).toEqual(["fd00::1", "10.1.0.7"]);
    expect([addresses(""), addresses("10.1.0.7,machine")]).toEqual([["10.0.0.1"], ["10.0.0.1"]]);
  });

  it("names certificates in files by chain and key; one without the other does not count", () => {
    const said = {
      TLS_CLIENT_CERT_CHAIN: "/c.pem",
      TLS_CLIENT_KEY: "/k.pem",
      TLS_CLIENT_ROOT_CERT: "/r.pem",
      TLS_SERVER_CERT_CHAIN: "/s.pem",
    };
    expect(metadataOf(said)?.clientFiles).toEqual({ chain: "/c.pem", key: "/k.pem", roots: "/r.pem" });
    expect(metadataOf(said)?.serverFiles).toBeUndefined();
  });

  it("has ports of the bootstrap, Istio's where it does not say, and secured ones where it does", () => {
    expect(metadataOf({})?.bootstrapPorts).toEqual([15_021, 15_090]);
    const all = { ENVOY_STATUS_PORT: 1, ENVOY_PROMETHEUS_PORT: "2", ENVOY_SECURE_METRICS_PORT: 3, ENVOY_SECURE_MERGED_METRICS_PORT: 4 };
    expect(metadataOf(all)?.bootstrapPorts).toEqual([1, 2, 3, 4]);
  });

  it("switches on by what Go reads as true, but HTTP/1.0 by 1 alone, as in Istio", () => {
    expect(["1", "t", "True", "yes", "0"].map((UNPRIVILEGED_POD) => metadataOf({ UNPRIVILEGED_POD })?.unprivilegedPod)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
    expect(["1", "true", "0"].map((HTTP10) => metadataOf({ HTTP10 })?.http10)).toEqual([true, false, false]);
  });
});
