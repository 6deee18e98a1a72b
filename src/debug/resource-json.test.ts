import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { RouteConfigurationSchema } from "../gen/envoy/config/route/v3/route_pb.js";
import { encoded } from "../wire/encode.ts";
import { encodedJson, messageRegistry } from "../wire/json.ts";
import { ROUTE_TYPE } from "../wire/type-urls.ts";
import { resourceJson } from "./resource-json.ts";

const tableOf = (hosts: number) =>
  encoded(
    { typeUrl: ROUTE_TYPE, name: "80" },
    RouteConfigurationSchema,
    create(RouteConfigurationSchema, {
      name: "80",
      validateClusters: false,
      ignorePortInHostMatching: true,
      virtualHosts: Array.from({ length: hosts }, (_, n) => ({
        name: `host-${n}`,
        domains: [`host-${n}.example.com`, `host-${n}.example.com:80`],
      })),
      maxDirectResponseBodySizeBytes: 7,
    }),
  );

describe("resourceJson", () => {
  it("reads a large table host by host, and what comes of it is the same", async () => {
    const registry = await messageRegistry();
    const [small, large] = [tableOf(3), tableOf(3_000)];
    assert.deepEqual(resourceJson(small, registry), { json: encodedJson(registry, small) });
    const { json, hosts = [] } = resourceJson(large, registry);
    assert.equal("virtualHosts" in json, false);
    assert.deepEqual({ ...json, virtualHosts: [...hosts] }, encodedJson(registry, large));
  });
});
