import { describe, expect, it } from "vitest";
import { KINDS } from "../kinds/index.ts";
import { type CustomResourceDefinition, customResourceDefinitions } from "./custom-resource-definition.ts";
import type { JsonSchema } from "./json-schema.ts";

const definitions = customResourceDefinitions();

const schemaOf = (kind: string): JsonSchema => {
  const schema = definitions.find(({ spec }) => spec.names.kind === kind)?.spec.versions[0]?.schema.openAPIV3Schema;
  if (schema === undefined) throw new Error(`no definition of ${kind}`);
  return schema;
};

/** The schema at a path such as `spec.http[].match[].headers{}`. */
function at(kind: string, path: string): JsonSchema | undefined {
  let schema: JsonSchema | undefined = schemaOf(kind);
  for (const part of path.match(/[^.[\]{}]+|\[\]|\{\}/g) ?? []) {
    schema = part === "[]" ? schema?.items : part === "{}" ? schema?.additionalProperties : schema?.properties?.[part];
  }
  return schema;
}

describe("custom resource definitions", () => {
  it("are there for Istio's kinds and for no others", () => {
    const groups = new Set(definitions.map(({ spec }) => spec.group));
    expect([...groups].sort()).toEqual(["extensions.istio.io", "networking.istio.io", "security.istio.io", "telemetry.istio.io"]);
    expect(definitions.length).toBe(KINDS.filter(({ group }) => group.endsWith(".istio.io")).length);
  });

  for (const definition of definitions) {
    const { kind } = definition.spec.names;
    it(`${kind} is what Kubernetes takes`, () => expect(faultsOf(definition)).toEqual([]));
    it(`${kind} can be applied by kubectl, which keeps a copy of it in an annotation of 256 KiB at most`, () => {
      expect(JSON.stringify(definition).length).toBeLessThan(256 * 1024);
    });
  }

  it("say of each field what JSON it takes", () => {
    expect(at("VirtualService", "spec.http[].timeout")).toMatchObject({ type: "string", "x-kubernetes-validations": [{}] });
    expect(at("DestinationRule", "spec.trafficPolicy.connectionPool.tcp.idleTimeout")).toEqual({ type: "string" });
    expect(at("VirtualService", "spec.http[].mirrorPercent")).toEqual({
      type: "integer",
      minimum: 0,
      maximum: 4_294_967_295,
      nullable: true,
    });
    expect(at("VirtualService", "spec.http[].mirror_percent")).toEqual(at("VirtualService", "spec.http[].mirrorPercent"));
    expect(at("VirtualService", "spec.http[].match[].sourceLabels")).toEqual({ type: "object", additionalProperties: { type: "string" } });
    expect(at("VirtualService", "spec.http[].fault.abort.percentage.value")).toEqual({ type: "number", format: "double" });
    expect(at("ServiceEntry", "spec.location")).toEqual({ type: "string", enum: ["MESH_EXTERNAL", "MESH_INTERNAL"] });
    expect(at("EnvoyFilter", "spec.configPatches[].patch.value")).toEqual({ type: "object", "x-kubernetes-preserve-unknown-fields": true });
    expect(at("Sidecar", "status.observedGeneration")).toMatchObject({ "x-kubernetes-int-or-string": true });
    const given = [{ required: ["exact"] }, { required: ["prefix"] }, { required: ["regex"] }];
    expect(at("VirtualService", "spec.http[].match[].uri")?.oneOf).toEqual([{ not: { anyOf: given } }, ...given]);
  });

  it("hold the rules that our own reading applies", () => {
    expect(at("ServiceEntry", "spec.addresses")).toMatchObject({ maxItems: 256 });
    expect(at("AuthorizationPolicy", "spec.targetRefs[].kind")).toMatchObject({ minLength: 1, maxLength: 63 });
    expect(at("ServiceEntry", "spec.ports")).toMatchObject({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"] });
    expect(schemaOf("ServiceEntry").required).toEqual(["spec"]);
    expect(schemaOf("Sidecar").required).toBeUndefined();
  });

  it("store Telemetry in the version that clusters have it in, all others in the preferred one", () => {
    const stored = definitions.map(({ spec }) => [spec.names.kind, spec.versions.findIndex(({ storage }) => storage)]);
    expect(stored.filter(([, index]) => index !== 0)).toEqual([["Telemetry", 1]]);
  });

  it("are told from ones that Kubernetes does not take", () => {
    const [first] = definitions;
    if (first === undefined) throw new Error("no definition");
    const withSpec = (spec: JsonSchema): CustomResourceDefinition => {
      const versions = first.spec.versions.map((version) => ({
        ...version,
        schema: { openAPIV3Schema: { type: "object" as const, properties: { spec } } },
      }));
      return { ...first, spec: { ...first.spec, versions: versions.slice(0, 1) } };
    };
    const wrong: readonly [JsonSchema, RegExp][] = [
      [{}, /type/],
      [{ type: "array" }, /items/],
      [{ type: "object", properties: {}, additionalProperties: { type: "string" } }, /not both/],
      [{ type: "object", oneOf: [{ type: "string" }] }, /junctor/],
      [{ type: "object", anyOf: [{ properties: { a: {} } }] }, /outside/],
      [{ type: "object", required: ["a"], properties: {} }, /required/],
      [
        {
          type: "array",
          items: { type: "object", properties: { k: { type: "string" } } },
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["k"],
        },
        /list key/,
      ],
      [{ type: "string", pattern: "(" }, /pattern/],
    ];
    for (const [spec, fault] of wrong) expect(faultsOf(withSpec(spec)).join("; ")).toMatch(fault);
    expect(faultsOf({ ...first, metadata: { name: "x" } })).toEqual(["metadata.name is not plural.group"]);
    expect(
      faultsOf({ ...first, spec: { ...first.spec, versions: first.spec.versions.map((one) => ({ ...one, storage: true })) } }),
    ).toContain("not exactly one version is stored");
  });
});

/** The rules of `apiextensions.k8s.io/v1` for definitions and structural schemas, as far as they concern what we use of them. */
function faultsOf({ metadata, spec }: CustomResourceDefinition): readonly string[] {
  const names = [spec.names.plural, spec.names.singular, ...(spec.names.shortNames ?? []), ...spec.names.categories];
  return [
    ...(metadata.name === `${spec.names.plural}.${spec.group}` ? [] : ["metadata.name is not plural.group"]),
    ...names.filter((name) => !/^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(name)).map((name) => `${name} is no DNS label`),
    ...(spec.versions.filter(({ storage }) => storage).length === 1 ? [] : ["not exactly one version is stored"]),
    ...(new Set(spec.versions.map(({ name }) => name)).size === spec.versions.length ? [] : ["a version is there twice"]),
    ...spec.versions.flatMap(({ schema: { openAPIV3Schema } }) => [
      ...(openAPIV3Schema.type === "object" ? [] : ["the root is no object"]),
      ...schemaFaults(openAPIV3Schema, ""),
    ]),
  ];
}

function schemaFaults(schema: JsonSchema, path: string): readonly string[] {
  const { type, properties, additionalProperties, items, required = [] } = schema;
  const anything = schema["x-kubernetes-int-or-string"] ?? schema["x-kubernetes-preserve-unknown-fields"];
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  const fault = (condition: boolean, sentence: string): readonly string[] => (condition ? [`${path}: ${sentence}`] : []);
  return [
    ...fault(type === undefined && anything !== true, "has no type"),
    ...fault(type === "array" && items === undefined, "an array needs items"),
    ...fault(properties !== undefined && additionalProperties !== undefined, "properties or additionalProperties, not both"),
    ...fault((properties ?? additionalProperties) !== undefined && type !== "object", "only an object has properties"),
    ...fault(
      required.some((name) => properties?.[name] === undefined),
      "a required field is not there",
    ),
    ...fault((schema["x-kubernetes-list-type"] === "map") !== keys.length > 0, "a map list needs keys"),
    ...fault(
      keys.some((key) => items?.required?.includes(key) !== true || !["string", "integer"].includes(items.properties?.[key]?.type ?? "")),
      "a list key must be required, and a scalar",
    ),
    ...fault(!isPattern(schema.pattern), "the pattern is none"),
    ...junctorsOf(schema).flatMap((junctor) => junctorFaults(junctor, schema, path)),
    ...Object.entries(properties ?? {}).flatMap(([name, value]) => schemaFaults(value, `${path}.${name}`)),
    ...(items === undefined ? [] : schemaFaults(items, `${path}[]`)),
    ...(additionalProperties === undefined ? [] : schemaFaults(additionalProperties, `${path}{}`)),
  ];
}

const junctorsOf = ({ oneOf = [], anyOf = [], allOf = [], not }: JsonSchema): readonly JsonSchema[] => [
  ...oneOf,
  ...anyOf,
  ...allOf,
  ...(not === undefined ? [] : [not]),
];

/** Inside a junctor nothing may be declared, only demanded; but for the types of an int-or-string. */
function junctorFaults(junctor: JsonSchema, outside: JsonSchema, path: string): readonly string[] {
  const declares = junctor.type !== undefined || junctor.nullable !== undefined || junctor.additionalProperties !== undefined;
  const named = [...Object.keys(junctor.properties ?? {}), ...(junctor.required ?? [])];
  return [
    ...(declares && outside["x-kubernetes-int-or-string"] !== true ? [`${path}: a junctor declares a type`] : []),
    ...named
      .filter((name) => outside.properties?.[name] === undefined)
      .map((name) => `${path}: ${name} is not declared outside the junctor`),
    ...junctorsOf(junctor).flatMap((inner) => junctorFaults(inner, outside, path)),
  ];
}

function isPattern(pattern: string | undefined): boolean {
  try {
    return pattern === undefined || new RegExp(pattern) instanceof RegExp;
  } catch {
    return false;
  }
}
