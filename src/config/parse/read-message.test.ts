import {
  create,
  type DescField,
  type DescMessage,
  equals,
  type JsonObject,
  type MessageShape,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { DurationSchema, isWrapperDesc } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { holds } from "../../../test/support/holds.ts";
import { TrafficExtensionSchema } from "../../gen/istio/extensions/v1alpha1/traffic_extension_pb.js";
import { WasmPluginSchema } from "../../gen/istio/extensions/v1alpha1/wasm_pb.js";
import { MeshConfigSchema } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { MeshNetworksSchema } from "../../gen/istio/mesh/v1alpha1/mesh_networks_pb.js";
import { DestinationRuleSchema } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import { EnvoyFilterSchema } from "../../gen/istio/networking/v1alpha3/envoy_filter_pb.js";
import { GatewaySchema } from "../../gen/istio/networking/v1alpha3/gateway_pb.js";
import { ServiceEntrySchema } from "../../gen/istio/networking/v1alpha3/service_entry_pb.js";
import { SidecarSchema } from "../../gen/istio/networking/v1alpha3/sidecar_pb.js";
import { VirtualServiceSchema } from "../../gen/istio/networking/v1alpha3/virtual_service_pb.js";
import { WorkloadEntrySchema } from "../../gen/istio/networking/v1alpha3/workload_entry_pb.js";
import { WorkloadGroupSchema } from "../../gen/istio/networking/v1alpha3/workload_group_pb.js";
import { ProxyConfigSchema } from "../../gen/istio/networking/v1beta1/proxy_config_pb.js";
import { AuthorizationPolicySchema } from "../../gen/istio/security/v1beta1/authorization_policy_pb.js";
import { PeerAuthenticationSchema } from "../../gen/istio/security/v1beta1/peer_authentication_pb.js";
import { RequestAuthenticationSchema } from "../../gen/istio/security/v1beta1/request_authentication_pb.js";
import { TelemetrySchema } from "../../gen/istio/telemetry/v1alpha1/telemetry_pb.js";
import { formatPath } from "../problem.ts";
import { parseGoDuration } from "./go-duration.ts";
import { readMessage } from "./read-message.ts";

const SCHEMAS: readonly DescMessage[] = [
  VirtualServiceSchema,
  DestinationRuleSchema,
  GatewaySchema,
  ServiceEntrySchema,
  WorkloadEntrySchema,
  WorkloadGroupSchema,
  SidecarSchema,
  EnvoyFilterSchema,
  ProxyConfigSchema,
  PeerAuthenticationSchema,
  RequestAuthenticationSchema,
  AuthorizationPolicySchema,
  TelemetrySchema,
  WasmPluginSchema,
  TrafficExtensionSchema,
  MeshConfigSchema,
  MeshNetworksSchema,
];

/** Reads and returns the message with what was reported, as `code path`. */
function read<D extends DescMessage>(schema: D, json: unknown): { readonly message: MessageShape<D>; readonly faults: readonly string[] } {
  const faults: string[] = [];
  const message = readMessage(schema, json, { report: (code, path) => faults.push(`${code} ${formatPath(path)}`), path: ["spec"] });
  return { message, faults };
}

describe("readMessage reads back what protobuf writes", () => {
  for (const schema of SCHEMAS) {
    it(schema.typeName, () => {
      holds(
        fc.property(anyMessage(schema, 3), fc.boolean(), (init, useProtoFieldName) => {
          const message = create(schema, init as never);
          const { message: back, faults } = read(schema, toJson(schema, message, { useProtoFieldName }));
          expect(faults).toEqual([]);
          expect(equals(schema, message, back)).toBe(true);
        }),
        { numRuns: 60 },
      );
    });
  }
});

describe("readMessage takes what Istio takes", () => {
  const takes: readonly [what: string, schema: DescMessage, json: JsonObject, want: JsonObject][] = [
    [
      "Go durations",
      VirtualServiceSchema,
      { http: [{ timeout: "1h30m", retries: { perTryTimeout: "100ms" } }] },
      { http: [{ timeout: "5400s", retries: { perTryTimeout: "0.100s" } }] },
    ],
    ["numbers as texts", WorkloadEntrySchema, { weight: "7", ports: { http: "80" } }, { weight: 7, ports: { http: 80 } }],
    ["null as absent", WorkloadEntrySchema, { address: null, weight: null, ports: null }, {}],
    ["enums by number", ServiceEntrySchema, { resolution: 1 }, { resolution: "STATIC" }],
    [
      "proto names",
      ServiceEntrySchema,
      { export_to: ["."], workload_selector: { labels: { a: "b" } } },
      { exportTo: ["."], workloadSelector: { labels: { a: "b" } } },
    ],
    [
      "wrappers",
      DestinationRuleSchema,
      { trafficPolicy: { outlierDetection: { consecutive5xxErrors: 0 } } },
      { trafficPolicy: { outlierDetection: { consecutive5xxErrors: 0 } } },
    ],
    [
      "long numbers",
      DestinationRuleSchema,
      { trafficPolicy: { loadBalancer: { consistentHash: { maglev: { tableSize: 65537 } } } } },
      { trafficPolicy: { loadBalancer: { consistentHash: { maglev: { tableSize: "65537" } } } } },
    ],
    [
      "structs",
      EnvoyFilterSchema,
      { configPatches: [{ patch: { value: { a: [1, null, { b: "c" }] } } }] },
      { configPatches: [{ patch: { value: { a: [1, null, { b: "c" }] } } }] },
    ],
    [
      "maps with numbers as keys",
      PeerAuthenticationSchema,
      { portLevelMtls: { "80": { mode: "STRICT" } } },
      { portLevelMtls: { "80": { mode: "STRICT" } } },
    ],
  ];
  for (const [what, schema, json, want] of takes) {
    it(what, () => {
      const { message, faults } = read(schema, json);
      expect(faults).toEqual([]);
      expect(toJson(schema, message)).toEqual(want);
    });
  }
});

describe("readMessage refuses", () => {
  const refuses: readonly [what: string, schema: DescMessage, json: unknown, faults: readonly string[]][] = [
    ["unknown fields", VirtualServiceSchema, { http: [{ tiemout: "1s" }] }, ["schema.unknown-field spec.http[0].tiemout"]],
    [
      "a wrong type, and goes on",
      VirtualServiceSchema,
      { hosts: "a", http: [{ timeout: 5 }] },
      ["schema.wrong-type spec.hosts", "schema.wrong-type spec.http[0].timeout"],
    ],
    ["numbers for texts", WorkloadEntrySchema, { address: 7 }, ["schema.wrong-type spec.address"]],
    [
      "texts for booleans",
      SidecarSchema,
      { ingress: [{ tls: { httpsRedirect: "true" } }] },
      ["schema.wrong-type spec.ingress[0].tls.httpsRedirect"],
    ],
    ["fractions for whole numbers", WorkloadEntrySchema, { weight: 1.5 }, ["schema.wrong-type spec.weight"]],
    ["numbers out of range", WorkloadEntrySchema, { weight: -1 }, ["schema.wrong-type spec.weight"]],
    ["unknown enum names", ServiceEntrySchema, { resolution: "STATICK" }, ["schema.wrong-type spec.resolution"]],
    [
      "two members of a oneof",
      VirtualServiceSchema,
      { http: [{ match: [{ uri: { exact: "/", prefix: "/" } }] }] },
      ["field.conflict spec.http[0].match[0].uri.prefix"],
    ],
    ["a field under both names", ServiceEntrySchema, { export_to: ["."], exportTo: ["*"] }, ["field.conflict spec.export_to"]],
    ["null in lists", ServiceEntrySchema, { hosts: [null] }, ["schema.wrong-type spec.hosts[0]"]],
    [
      "words for map keys that are numbers",
      PeerAuthenticationSchema,
      { portLevelMtls: { http: {} } },
      ["schema.wrong-type spec.portLevelMtls.http"],
    ],
    ["a list for the whole", ServiceEntrySchema, [], ["schema.wrong-type spec"]],
    [
      "keys that would change prototypes",
      WorkloadEntrySchema,
      JSON.parse('{"labels":{"__proto__":"x"}}'),
      ["field.invalid spec.labels.__proto__"],
    ],
    [
      "endless nesting",
      EnvoyFilterSchema,
      { configPatches: [{ patch: { value: deep(500) } }] },
      [expect.stringMatching(/^document.unreadable spec.configPatches/) as never],
    ],
  ];
  for (const [what, schema, json, faults] of refuses) it(what, () => expect(read(schema, json).faults).toEqual(faults));
});

describe("parseGoDuration", () => {
  const table: readonly [text: string, seconds: bigint | undefined, nanos?: number][] = [
    ["0", 0n, 0],
    ["0s", 0n, 0],
    ["100ms", 0n, 100_000_000],
    ["1h30m", 5400n, 0],
    ["1.5s", 1n, 500_000_000],
    [".5s", 0n, 500_000_000],
    ["-1.5h", -5400n, 0],
    ["-0.5s", 0n, -500_000_000],
    ["1us", 0n, 1000],
    ["1µs", 0n, 1000],
    ["2h45m30.25s", 9930n, 250_000_000],
    ["1", undefined],
    ["", undefined],
    ["-", undefined],
    ["s", undefined],
    [".s", undefined],
    ["1 s", undefined],
    ["1d", undefined],
    ["apple", undefined],
    ["1s2", undefined],
    ["999999999999999s", undefined],
  ];
  for (const [text, seconds, nanos] of table) {
    it(JSON.stringify(text), () => {
      const want = seconds === undefined ? undefined : create(DurationSchema, { seconds, nanos: nanos ?? 0 });
      expect(parseGoDuration(text)).toEqual(want);
    });
  }
});

function deep(levels: number): unknown {
  let value: unknown = {};
  for (let level = 0; level < levels; level++) value = { a: value };
  return value;
}

/** Keys of maps: `__proto__` alone is refused. */
const KEY = fc.string().filter((key) => key !== "__proto__");

/** Random initial values for a message, nested down to `depth`. */
function anyMessage(desc: DescMessage, depth: number): fc.Arbitrary<Record<string, unknown>> {
  const members: Record<string, fc.Arbitrary<unknown>> = {};
  for (const member of desc.members) {
    if (member.kind === "oneof") {
      const cases = member.fields.filter((field) => isReachable(field, depth));
      if (cases.length > 0)
        members[member.localName] = fc.oneof(
          ...cases.map((field) => fc.record({ case: fc.constant(field.localName), value: anyField(field, depth) })),
        );
    } else if (isReachable(member, depth)) members[member.localName] = anyField(member, depth);
  }
  return fc.record(members, { requiredKeys: [] });
}

const isReachable = (field: DescField, depth: number): boolean =>
  field.message === undefined || depth > 0 || field.message.typeName.startsWith("google.protobuf.");

function anyField(field: DescField, depth: number): fc.Arbitrary<unknown> {
  switch (field.fieldKind) {
    case "list":
      return fc.array(anyItem(field, depth), { maxLength: 2 });
    case "map":
      return fc.dictionary(field.mapKey === ScalarType.STRING ? KEY : fc.nat(65_535).map(String), anyItem(field, depth), {
        maxKeys: 2,
        noNullPrototype: true,
      });
    default:
      return anyItem(field, depth);
  }
}

function anyItem(field: DescField, depth: number): fc.Arbitrary<unknown> {
  if (field.enum !== undefined) return fc.constantFrom(...field.enum.values.map((value) => value.number));
  if (field.scalar !== undefined) return anyScalar(field.scalar);
  const message = field.message;
  if (message === undefined) return fc.constant(undefined);
  if (isWrapperDesc(message)) return anyScalar((message.fields[0] as DescField & { fieldKind: "scalar" }).scalar);
  switch (message.typeName) {
    case "google.protobuf.Duration":
      return fc.record({ seconds: fc.bigInt(0n, 1_000_000n), nanos: fc.nat(999_999_999) });
    case "google.protobuf.Struct":
      return fc.dictionary(KEY, fc.oneof(fc.string(), fc.boolean(), fc.integer(), fc.constant(null), fc.array(fc.integer())), {
        noNullPrototype: true,
      });
    default:
      return anyMessage(message, depth - 1);
  }
}

function anyScalar(type: ScalarType): fc.Arbitrary<unknown> {
  switch (type) {
    case ScalarType.STRING:
      return fc.string();
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.BYTES:
      return fc.uint8Array({ maxLength: 8 });
    case ScalarType.DOUBLE:
      return fc.double({ noNaN: true });
    case ScalarType.FLOAT:
      return fc.float({ noNaN: true });
    case ScalarType.UINT32:
      return fc.nat(4_294_967_295);
    case ScalarType.UINT64:
      return fc.bigInt(0n, 2n ** 64n - 1n);
    case ScalarType.INT64:
      return fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n);
    default:
      return fc.integer();
  }
}
