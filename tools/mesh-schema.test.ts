import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { MeshConfigSchema } from "../src/gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { ProxyConfigSchema } from "../src/gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import { FIELD_TEXTS } from "./mesh-schema/field-texts.ts";
import { meshDocs, meshSchema } from "./mesh-schema.ts";

const ROOT = join(import.meta.dirname, "..");

describe("the generated pages on mesh configuration", () => {
  for (const [path, text] of Object.entries(meshDocs())) {
    it(`${path} is what its sources say`, () => {
      const written = readFileSync(join(ROOT, path), "utf8");
      expect(written === text, `${path} is out of date: run npm run docs`).toBe(true);
    });
  }
});

describe("the schema of mesh.yaml", () => {
  const schema = meshSchema();

  it("resolves every reference", () => {
    const at = (pointer: string): unknown =>
      pointer
        .slice(2)
        .split("/")
        .reduce<unknown>((value, step) => (value as Record<string, unknown> | undefined)?.[step], schema);
    const references = [...JSON.stringify(schema).matchAll(/"\$ref":"([^"]+)"/g)].map(([, pointer = ""]) => pointer);
    expect(references.length).toBeGreaterThan(100);
    expect(references.filter((pointer) => at(pointer) === undefined)).toEqual([]);
  });

  it("has every field of MeshConfig and every field of the process", () => {
    const names = Object.keys(schema.properties as object);
    for (const field of MeshConfigSchema.fields) expect(names).toEqual(expect.arrayContaining([field.jsonName, field.name]));
    expect(names).toEqual(
      expect.arrayContaining([
        "include",
        "listen",
        "services",
        "tokenIssuers",
        "sidecar",
        "namespaces",
        "clusterWrites",
        "env",
        "meshNetworks",
      ]),
    );
  });

  it("has a text for every field of MeshConfig and ProxyConfig that is not deprecated, and none for others", () => {
    const fields = [MeshConfigSchema, ProxyConfigSchema].flatMap((message) =>
      message.fields.filter((field) => !field.deprecated).map((field) => `${message.name}.${field.jsonName}`),
    );
    expect(fields.filter((field) => FIELD_TEXTS[field] === undefined)).toEqual([]);
    const described = JSON.stringify(schema);
    expect(Object.entries(FIELD_TEXTS).filter(([, text]) => !described.includes(JSON.stringify(text)))).toEqual([]);
  });
});
