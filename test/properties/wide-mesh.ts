import { create, type JsonObject } from "@bufbuild/protobuf";
import fc from "fast-check";
import { NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import { type MeshParts, meshOf, type TestMesh } from "../support/mesh-from.ts";
import { allMade, type Doc, several, textOf } from "./doc.ts";
import { destinationRule } from "./kinds/destination-rules.ts";
import { envoyFilter, proxyConfig, trafficExtension, wasmPlugin } from "./kinds/extensions.ts";
import { gatewayApiObject, ingress } from "./kinds/gateway-api.ts";
import { gateway, sidecar } from "./kinds/gateways.ts";
import { authorizationPolicy, PROVIDERS, peerAuthentication, requestAuthentication, telemetry } from "./kinds/policies.ts";
import { kubernetesService, serviceEntry, workloadEntry } from "./kinds/services.ts";
import { virtualService } from "./kinds/virtual-services.ts";

/** A mesh in which any object may say anything that is allowed. */
export interface WideMesh {
  readonly docs: readonly Doc[];
  readonly mesh: JsonObject;
}

/** Objects of every kind that decides what a proxy is offered, with few of each, so that most of them meet. */
export const wideDocs: fc.Arbitrary<readonly Doc[]> = fc
  .tuple(
    several(serviceEntry, 4),
    several(workloadEntry, 2),
    several(kubernetesService, 2),
    several(virtualService, 3),
    several(destinationRule, 3),
    several(gateway, 2),
    several(sidecar, 1),
    several(peerAuthentication, 2),
    several(requestAuthentication, 2),
    several(authorizationPolicy, 3),
    several(telemetry, 2),
    several(wasmPlugin, 2),
    several(trafficExtension, 2),
    several(envoyFilter, 2),
    several(proxyConfig, 1),
    several(gatewayApiObject, 3),
    several(ingress, 1),
  )
  .map(allMade);

const meshSettings: fc.Arbitrary<JsonObject> = fc.record(
  {
    outboundTrafficPolicy: fc.constantFrom({ mode: "REGISTRY_ONLY" }, { mode: "ALLOW_ANY" }),
    accessLogFile: fc.constantFrom("/dev/stdout", ""),
    enableTracing: fc.boolean(),
    h2UpgradePolicy: fc.constantFrom("UPGRADE", "DO_NOT_UPGRADE"),
    enableAutoMtls: fc.boolean(),
    protocolDetectionTimeout: fc.constantFrom("0s", "5s"),
    verifyCertificateAtClient: fc.boolean(),
    trustDomainAliases: fc.constantFrom(["old-td"], []),
    pathNormalization: fc.constantFrom({ normalization: "MERGE_SLASHES" }, { normalization: "NONE" }),
    localityLbSetting: fc.constantFrom({ enabled: false }, { failover: [{ from: "r1", to: "r2" }] }),
  },
  { requiredKeys: [], noNullPrototype: true },
);

export const wideMesh: fc.Arbitrary<WideMesh> = fc.record({
  docs: wideDocs,
  mesh: meshSettings.map((settings) => ({ ...settings, extensionProviders: [...PROVIDERS] })),
});

const node = (name: string, [type, address]: readonly [string, string], metadata: JsonObject): MeshParts["nodes"][number] => ({
  name,
  node: create(NodeSchema, {
    id: `${type}~${address}~${name}.a~a.svc.cluster.local`,
    locality: { region: "r1", zone: "z1" },
    metadata: { NAMESPACE: "a", ISTIO_VERSION: "1.32.0", ...metadata },
  }),
});

const web = { LABELS: { app: "web" } };

/** One proxy of each sort. */
export const WIDE_NODES: MeshParts["nodes"] = [
  node("web", ["sidecar", "10.1.9.9"], { ...web, DNS_CAPTURE: "true" }),
  node("plain", ["sidecar", "10.1.9.10"], { LABELS: { app: "plain" }, INTERCEPTION_MODE: "TPROXY" }),
  node("hosts", ["sidecar", "10.1.9.9"], { ...web, VHDS: "true" }),
  node("six", ["sidecar", "2001:db8::9"], { ...web, INSTANCE_IPS: "2001:db8::9" }),
  node("both", ["sidecar", "10.1.9.9"], { ...web, INSTANCE_IPS: "10.1.9.9,2001:db8::9", INTERCEPTION_MODE: "NONE" }),
  node("edge", ["router", "10.1.9.8"], { LABELS: { app: "edge" } }),
  node("edge-six", ["router", "2001:db8::8"], { LABELS: { app: "edge" }, INSTANCE_IPS: "2001:db8::8", VHDS: "true" }),
];

/** The mesh as all proxies find it. */
export const wideMeshOf = ({ docs, mesh }: WideMesh): TestMesh =>
  meshOf({ documents: [textOf(docs)], mesh, nodes: WIDE_NODES, recheck: false });
