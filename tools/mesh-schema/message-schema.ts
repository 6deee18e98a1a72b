import { type DescEnum, type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";

/** A JSON Schema: only what we write of it. */
export type Schema = { readonly [keyword: string]: SchemaValue };
type SchemaValue = string | number | boolean | null | readonly SchemaValue[] | { readonly [key: string]: SchemaValue };

/** Texts for fields, by `Message.field` under JSON names. */
export type FieldTexts = Readonly<Record<string, string>>;

/** Go's durations: `100ms`, `1h30m`, `-1.5s`, `0`. */
export const DURATION_PATTERN = "^[+-]?(0|((\\d+(\\.\\d*)?|\\.\\d+)(ns|us|µs|μs|ms|s|m|h))+)$";

/**
 * Collects the schemas of messages, one definition each, as the control plane reads them: numbers may be texts, null is absence, enums go by name
 * or number, and a field may be written under its JSON name or its proto name.
 */
export class MessageSchemas {
  readonly definitions: Record<string, Schema> = {};
  readonly #texts: FieldTexts;

  constructor(texts: FieldTexts) {
    this.#texts = texts;
  }

  /** Properties of a message by field name, proto names included. */
  propertiesOf(message: DescMessage, pointer: string): Record<string, Schema> {
    const properties: Record<string, Schema> = {};
    for (const field of message.fields) properties[field.jsonName] = this.#fieldSchema(message, field);
    for (const field of message.fields) {
      if (field.name !== field.jsonName) properties[field.name] = { $ref: `${pointer}/properties/${field.jsonName}` };
    }
    return properties;
  }

  /** A reference to the definition of a message, which is made on first use. */
  reference(message: DescMessage): Schema {
    const known = wellKnown(message);
    if (known !== undefined) return known;
    const name = message.typeName.replace(/^istio\./, "");
    if (this.definitions[name] === undefined) {
      this.definitions[name] = {};
      const properties = this.propertiesOf(message, `#/$defs/${name}`);
      this.definitions[name] = { type: ["object", "null"], additionalProperties: false, properties };
    }
    return { $ref: `#/$defs/${name}` };
  }

  #fieldSchema(message: DescMessage, field: DescField): Schema {
    const text = this.#texts[`${message.name}.${field.jsonName}`];
    return {
      ...(text !== undefined && { description: text }),
      ...(field.deprecated && { deprecated: true }),
      ...this.#valueSchema(field),
    };
  }

  #valueSchema(field: DescField): Schema {
    switch (field.fieldKind) {
      case "scalar":
        return scalarSchema(field.scalar);
      case "enum":
        return enumSchema(field.enum);
      case "message":
        return this.reference(field.message);
      case "list":
        return { type: ["array", "null"], items: this.#itemSchema(field) };
      case "map":
        return { type: ["object", "null"], additionalProperties: this.#itemSchema(field) };
    }
  }

  #itemSchema(field: DescField & { fieldKind: "list" | "map" }): Schema {
    if (field.message !== undefined) return this.reference(field.message);
    return field.enum === undefined ? scalarSchema(field.scalar) : enumSchema(field.enum);
  }
}

const enumSchema = (desc: DescEnum): Schema => ({
  anyOf: [{ enum: desc.values.map((value) => value.name) }, { type: ["integer", "null"] }],
});

function scalarSchema(type: ScalarType): Schema {
  switch (type) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return { type: ["string", "null"] };
    case ScalarType.BOOL:
      return { type: ["boolean", "null"] };
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return { type: ["number", "string", "null"], pattern: "^(-?(\\d+\\.?\\d*|\\.\\d+)([eE][-+]?\\d+)?|NaN|-?Infinity)$" };
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return { type: ["integer", "string", "null"], minimum: 0, maximum: 4_294_967_295, pattern: "^\\d{1,10}$" };
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return { type: ["integer", "string", "null"], minimum: -2_147_483_648, maximum: 2_147_483_647, pattern: "^-?\\d{1,10}$" };
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return { type: ["integer", "string", "null"], minimum: 0, pattern: "^\\d{1,20}$" };
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return { type: ["integer", "string", "null"], pattern: "^-?\\d{1,20}$" };
  }
}

/** Messages that JSON writes in a form of their own. */
function wellKnown(message: DescMessage): Schema | undefined {
  if (message.typeName === "google.protobuf.Duration") return { type: ["string", "null"], pattern: DURATION_PATTERN };
  if (message.typeName === "google.protobuf.Struct") return { type: ["object", "null"] };
  const wrapped = /^google\.protobuf\.\w+Value$/.test(message.typeName) ? message.fields[0] : undefined;
  return wrapped?.fieldKind === "scalar" ? scalarSchema(wrapped.scalar) : undefined;
}
