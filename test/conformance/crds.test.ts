import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { customResourceDefinitions } from "../../src/config/crd/custom-resource-definition.ts";
import type { JsonSchema } from "../../src/config/crd/json-schema.ts";

/** Istio's definitions as facts. */
const FACTS = resolve(import.meta.dirname, "../../../shared/conformance/crds");
const hasFacts = existsSync(join(FACTS, "crds.json"));
const facts = <T>(file: string): T => JSON.parse(readFileSync(join(FACTS, file), "utf8")) as T;

interface DefinitionFacts {
  readonly name: string;
  readonly group: string;
  readonly kind: string;
  readonly listKind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly scope: string;
  readonly versions: readonly {
    readonly name: string;
    readonly served: boolean;
    readonly storage: boolean;
    readonly subresources: readonly string[];
    readonly printerColumns: readonly object[];
    readonly schemaSameAs?: string;
  }[];
}

interface SchemaFacts {
  readonly props?: Readonly<Record<string, SchemaFacts>>;
  readonly items?: SchemaFacts;
  readonly values?: SchemaFacts;
  readonly celMessages?: readonly string[];
  readonly [fact: string]: unknown;
}

/** Our words for theirs. Rules in CEL are told by their messages only. */
const WORDS: Readonly<Record<string, keyof JsonSchema>> = {
  type: "type",
  fmt: "format",
  enum: "enum",
  required: "required",
  nullable: "nullable",
  min: "minimum",
  max: "maximum",
  minLen: "minLength",
  maxLen: "maxLength",
  minItems: "minItems",
  maxItems: "maxItems",
  minProps: "minProperties",
  maxProps: "maxProperties",
  pattern: "pattern",
  oneOf: "oneOf",
  anyOf: "anyOf",
  allOf: "allOf",
  preserveUnknown: "x-kubernetes-preserve-unknown-fields",
  intOrString: "x-kubernetes-int-or-string",
  listType: "x-kubernetes-list-type",
  listKeys: "x-kubernetes-list-map-keys",
};

describe.skipIf(!hasFacts)("definitions of Istio's kinds", () => {
  const definitions = new Map(customResourceDefinitions().map((definition) => [definition.metadata.name, definition]));
  const known = hasFacts ? facts<readonly DefinitionFacts[]>("crds.json") : [];

  it("are there for every kind", () => {
    expect([...definitions.keys()].sort()).toEqual(known.map(({ name }) => name).sort());
  });

  for (const fact of known) {
    const definition = definitions.get(fact.name);
    it(`${fact.kind}: names and versions`, () => {
      const { group, names, scope, versions } = definition?.spec ?? {};
      const { kind, listKind, plural, singular, shortNames, categories } = fact;
      expect({ group, scope, ...names, shortNames: names?.shortNames ?? [] }).toEqual({
        ...{ group: fact.group, scope: fact.scope, kind, listKind, plural, singular, shortNames, categories },
      });
      const told = versions?.map(({ name, served, storage, subresources, additionalPrinterColumns: printerColumns = [] }) => ({
        ...{ name, served, storage, subresources: Object.keys(subresources), printerColumns },
      }));
      expect(told?.toSorted((a, b) => (a.name < b.name ? -1 : 1))).toEqual(fact.versions.map(({ schemaSameAs: _, ...version }) => version));
    });

    it(`${fact.kind}: schema of each version`, () => {
      const schemas = facts<Readonly<Record<string, SchemaFacts>>>(`schema/${fact.kind}.json`);
      for (const { name, schemaSameAs } of fact.versions) {
        const ours = definition?.spec.versions.find((version) => version.name === name)?.schema.openAPIV3Schema;
        const theirs = schemas[schemaSameAs ?? name];
        if (ours === undefined || theirs === undefined) throw new Error(`${fact.kind} ${name} is not there`);
        expect(comparable(ours)).toEqual(comparable(schemaOf(theirs)));
      }
    });
  }
});

if (!hasFacts) console.log(`skipped: ${FACTS} is not there`);

function schemaOf({ props, items, values, celMessages, ...words }: SchemaFacts): JsonSchema {
  const own = Object.entries(words).map(([word, value]) => {
    const name = WORDS[word];
    if (name === undefined) throw new Error(`the facts speak of ${word}`);
    return [name, value];
  });
  return {
    ...(Object.fromEntries(own) as JsonSchema),
    ...(props !== undefined && { properties: Object.fromEntries(Object.entries(props).map(([name, value]) => [name, schemaOf(value)])) }),
    ...(items !== undefined && { items: schemaOf(items) }),
    ...(values !== undefined && { additionalProperties: schemaOf(values) }),
    ...(celMessages !== undefined && { [VALIDATIONS]: celMessages.map((message) => ({ message, rule: "" })) }),
  };
}

const VALIDATIONS = "x-kubernetes-validations";

/** Required fields and rules have no order, and the facts do not tell the rules. */
function comparable(schema: JsonSchema): JsonSchema {
  const messages = schema[VALIDATIONS]?.map(({ message }) => message).sort();
  return {
    ...schema,
    ...(messages !== undefined && { [VALIDATIONS]: messages.map((message) => ({ message, rule: "" })) }),
    ...(schema.required !== undefined && { required: schema.required.toSorted() }),
    ...(schema.items !== undefined && { items: comparable(schema.items) }),
    ...(schema.additionalProperties !== undefined && { additionalProperties: comparable(schema.additionalProperties) }),
    ...(schema.properties !== undefined && {
      properties: Object.fromEntries(Object.entries(schema.properties).map(([name, value]) => [name, comparable(value)])),
    }),
  };
}
