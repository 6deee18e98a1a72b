import { create, fromBinary, type JsonObject, type JsonValue, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, it } from "vitest";
import { NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import { readNode } from "../../src/generate/proxy-view.ts";
import { holds } from "../support/holds.ts";
import { type MeshParts, meshOf } from "../support/mesh-from.ts";

/** What Istio's agents say of themselves, and what generators look at. */
const KEYS = [
  ...["NAMESPACE", "NAME", "LABELS", "ANNOTATIONS", "SERVICE_ACCOUNT", "CLUSTER_ID", "NETWORK", "INSTANCE_IPS", "ISTIO_VERSION", "MESH_ID"],
  ...["INTERCEPTION_MODE", "DNS_CAPTURE", "WORKLOAD_IDENTITY", "GENERATOR", "PROXY_CONFIG", "HTTP10", "VHDS", "NODE_NAME", "OWNER"],
  ...["TLS_CLIENT_CERT_CHAIN", "TLS_CLIENT_KEY", "TLS_SERVER_CERT_CHAIN", "TLS_SERVER_KEY", "UNPRIVILEGED_POD", "SIDECAR_ORIG_SRC"],
];
const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<JsonValue>;
const value = fc.oneof(
  json,
  fc.constantFrom<JsonValue>("", "true", "none", "TPROXY", "10.0.0.1,::1", { app: "web" }, { concurrency: "x" }),
);
const metadata = fc.dictionary(fc.oneof(fc.constantFrom(...KEYS), fc.string({ maxLength: 8 })), value, {
  maxKeys: 8,
}) as fc.Arbitrary<JsonObject>;
const part = fc.oneof(fc.constantFrom("", "10.1.2.3", "::1", "web.a", "a.svc.cluster.local", "x"), fc.string({ maxLength: 12 }));
const id = fc.oneof(
  fc.tuple(fc.constantFrom("sidecar", "router", "waypoint"), part, part, part).map((parts) => parts.join("~")),
  fc.string({ maxLength: 40 }),
);

const SCENE = `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: one, namespace: a}
spec: {hosts: [one.test], ports: [{number: 80, name: http, protocol: HTTP}, {number: 443, name: tls, protocol: TLS}], resolution: STATIC, location: MESH_INTERNAL, endpoints: [{address: 10.1.2.3, labels: {app: web}}]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: a}
spec: {selector: {app: web}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}
`;

it("whatever a proxy says of itself, it is refused with a reason or offered what can be made for it", async () => {
  let served = 0;
  await holds(
    fc.asyncProperty(id, metadata, async (nodeId, said) => {
      const node = fromBinary(NodeSchema, toBinary(NodeSchema, create(NodeSchema, { id: nodeId, metadata: said })));
      const facts = readNode(node);
      if ("refused" in facts) {
        expect(facts.refused.length).toBeGreaterThan(10);
        expect(facts.refused.length).toBeLessThan(1_000);
        return;
      }
      served += 1;
      const parts: MeshParts = { documents: [SCENE], nodes: [{ name: "any", node }] };
      const mesh = meshOf(parts);
      const [proxy] = mesh.proxies;
      if (proxy === undefined || proxy.view.generator === "grpc") return;
      for (const [type, { failed }] of await mesh.resources(proxy)) expect({ type, failed }).toEqual({ type, failed: [] });
    }),
    { numRuns: 150 },
  );
  expect(served).toBeGreaterThan(0);
});
