import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { messageRegistry } from "../../src/wire/json.ts";

/** The Istio API as facts: names, numbers and types of every field. */
interface ApiFacts {
  readonly messages: Readonly<Record<string, Readonly<Record<string, FieldFacts>>>>;
  readonly enums: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

interface FieldFacts {
  readonly number: number;
  readonly type: string;
  readonly jsonName: string;
  readonly repeated?: boolean;
  readonly oneof?: string;
  readonly map?: readonly [string, string];
}

const FACTS = resolve(import.meta.dirname, "../../../shared/conformance/crds/proto.json");

describe.skipIf(!existsSync(FACTS))("proto/ is the Istio API", async () => {
  const facts = existsSync(FACTS) ? (JSON.parse(readFileSync(FACTS, "utf8")) as ApiFacts) : { messages: {}, enums: {} };
  const registry = await messageRegistry();

  for (const [name, fields] of Object.entries(facts.messages)) {
    it(`message ${name}`, () => {
      const message = registry.getMessage(name);
      expect(message, "is generated").toBeDefined();
      if (message !== undefined) expect(fieldsOf(message)).toEqual(expectedOf(fields));
    });
  }
  for (const [name, values] of Object.entries(facts.enums)) {
    it(`enum ${name}`, () => {
      const found = registry.getEnum(name);
      expect(Object.fromEntries(found?.values.map((value) => [value.name, value.number]) ?? [])).toEqual(values);
    });
  }
});

if (!existsSync(FACTS)) console.log(`skipped: ${FACTS} is not there`);

const fieldsOf = (message: DescMessage): unknown => Object.fromEntries(message.fields.map((field) => [field.name, describeField(field)]));

const expectedOf = (fields: Readonly<Record<string, FieldFacts>>): unknown =>
  Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      {
        number: field.number,
        jsonName: field.jsonName,
        type: field.map === undefined ? field.type : `map<${field.map.join(", ")}>`,
        repeated: field.repeated === true,
        oneof: field.oneof,
      },
    ]),
  );

function describeField(field: DescField): unknown {
  return {
    number: field.number,
    jsonName: field.jsonName,
    type: typeOf(field),
    repeated: field.fieldKind === "list",
    oneof: field.oneof?.name,
  };
}

function typeOf(field: DescField): string {
  if (field.fieldKind === "map") return `map<${scalarName(field.mapKey)}, ${valueType(field)}>`;
  return valueType(field);
}

function valueType(field: DescField): string {
  return field.message?.typeName ?? field.enum?.typeName ?? scalarName(field.scalar ?? ScalarType.STRING);
}

const scalarName = (type: ScalarType): string => ScalarType[type].toLowerCase();
