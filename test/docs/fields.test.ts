import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { TrafficExtensionSchema } from "../../src/gen/istio/extensions/v1alpha1/traffic_extension_pb.js";
import { WasmPluginSchema } from "../../src/gen/istio/extensions/v1alpha1/wasm_pb.js";
import { MeshConfigSchema } from "../../src/gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { DestinationRuleSchema } from "../../src/gen/istio/networking/v1alpha3/destination_rule_pb.js";
import { GatewaySchema } from "../../src/gen/istio/networking/v1alpha3/gateway_pb.js";
import { ServiceEntrySchema } from "../../src/gen/istio/networking/v1alpha3/service_entry_pb.js";
import { SidecarSchema } from "../../src/gen/istio/networking/v1alpha3/sidecar_pb.js";
import { VirtualServiceSchema } from "../../src/gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { WorkloadEntrySchema } from "../../src/gen/istio/networking/v1alpha3/workload_entry_pb.js";
import { WorkloadGroupSchema } from "../../src/gen/istio/networking/v1alpha3/workload_group_pb.js";
import { AuthorizationPolicySchema } from "../../src/gen/istio/security/v1beta1/authorization_policy_pb.js";
import { PeerAuthenticationSchema } from "../../src/gen/istio/security/v1beta1/peer_authentication_pb.js";
import { RequestAuthenticationSchema } from "../../src/gen/istio/security/v1beta1/request_authentication_pb.js";
import { TelemetrySchema } from "../../src/gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import { PolicyTargetReferenceSchema } from "../../src/gen/istio/type/v1beta1/selector_pb.js";

/** Kinds and the sections that speak of them, by page. */
const PAGES: Readonly<Record<string, readonly (readonly [section: string, schema: DescMessage])[]>> = {
  "docs/traffic.md": [
    ["VirtualService", VirtualServiceSchema],
    ["DestinationRule", DestinationRuleSchema],
    ["Gateway", GatewaySchema],
    ["ServiceEntry", ServiceEntrySchema],
    ["WorkloadEntry and WorkloadGroup", WorkloadEntrySchema],
    ["WorkloadEntry and WorkloadGroup", WorkloadGroupSchema],
    ["Sidecar", SidecarSchema],
    ["Telemetry", TelemetrySchema],
    ["WasmPlugin and TrafficExtension", WasmPluginSchema],
    ["WasmPlugin and TrafficExtension", TrafficExtensionSchema],
  ],
  "docs/policies.md": [
    ["Which policies count", PolicyTargetReferenceSchema],
    ["PeerAuthentication", PeerAuthenticationSchema],
    ["RequestAuthentication", RequestAuthenticationSchema],
    ["AuthorizationPolicy", AuthorizationPolicySchema],
  ],
};

/** Messages of fields that another section, or another page, is about. */
const ELSEWHERE = new Set(["istio.networking.v1alpha3.WorkloadEntry", "istio.type.v1beta1.PolicyTargetReference"]);
/** Messages that several kinds have: explained once, anywhere on the page. */
const SHARED = [
  "istio.networking.v1alpha3.ServerTLSSettings",
  "istio.networking.v1alpha3.ConnectionPoolSettings",
  "istio.networking.v1alpha3.Destination",
];

const pageOf = (path: string): string => readFileSync(join(import.meta.dirname, "../..", path), "utf8");

const sectionOf = (page: string, title: string): string => page.split("\n## ").find((text) => text.startsWith(`${title}\n`)) ?? "";

/** Words in code style. */
const namedIn = (text: string): ReadonlySet<string> =>
  new Set([...text.matchAll(/`([^`]+)`/g)].flatMap(([, code = ""]) => code.match(/\w+/g) ?? []));

function fieldsOf(message: DescMessage, seen = new Set<string>()): readonly DescField[] {
  if (seen.has(message.typeName) || message.typeName.startsWith("google.") || ELSEWHERE.has(message.typeName)) return [];
  seen.add(message.typeName);
  return message.fields.flatMap((field) => [field, ...(field.message === undefined ? [] : fieldsOf(field.message, seen))]);
}

describe.each(Object.entries(PAGES))("%s names every field of", (path, kinds) => {
  const page = pageOf(path);
  it.each(kinds)("%s (%s)", (title, schema) => {
    const own = namedIn(sectionOf(page, title));
    const shared = namedIn(page);
    const fields = ELSEWHERE.has(schema.typeName) ? schema.fields : fieldsOf(schema);
    const missing = fields.filter(
      (field) => !(SHARED.some((name) => field.parent.typeName.startsWith(name)) ? shared : own).has(field.jsonName),
    );
    expect(missing.map((field) => `${field.parent.name}.${field.jsonName}`)).toEqual([]);
  });
});

describe("docs/traffic.md names every field of", () => {
  it("MeshConfig, but for those of sources, certificates and authorities", () => {
    const named = namedIn(pageOf("docs/traffic.md"));
    const others = ["configSources", "caCertificates", "certificates", "ca"];
    const missing = MeshConfigSchema.fields.filter(({ jsonName }) => !named.has(jsonName) && !others.includes(jsonName));
    expect(missing.map(({ jsonName }) => jsonName)).toEqual([]);
  });
});
