import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { ANY_DURATION, DURATION_RULE, MESSAGE_RULES } from "./cel-rules.ts";
import type { JsonSchema } from "./json-schema.ts";
import { MESSAGE_BOUNDS, WRITTEN_AS_IN_PROTOBUF } from "./message-bounds.ts";
import { withBounds, withValidations } from "./schema-bounds.ts";

/**
 * The schema of a message's JSON. Messages are written out where they are used, because Kubernetes takes no references. A schema is kept
 * wider than our own reading where Kubernetes cannot say it: the admission webhook judges the rest.
 */
export function messageSchema(message: DescMessage): JsonSchema {
  const known = WELL_KNOWN[message.typeName];
  if (known !== undefined) return known;
  const properties = message.fields.flatMap((field): readonly (readonly [string, JsonSchema])[] => {
    const schema = isBoundDuration(field) ? { ...fieldSchema(field), "x-kubernetes-validations": [DURATION_RULE] } : fieldSchema(field);
    const isAlias = WRITTEN_AS_IN_PROTOBUF.has(`${message.typeName}.${field.name}`);
    return isAlias
      ? [
          [field.jsonName, schema],
          [field.name, schema],
        ]
      : [[field.jsonName, schema]];
  });
  const sorted = Object.fromEntries(properties.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  const bounded = withBounds({ type: "object", properties: sorted, ...choices(message) }, MESSAGE_BOUNDS[message.typeName] ?? {});
  return withValidations(bounded, MESSAGE_RULES[message.typeName] ?? {});
}

const isBoundDuration = ({ parent, jsonName, message }: DescField): boolean =>
  message?.typeName === "google.protobuf.Duration" && !ANY_DURATION.has(`${parent.typeName}.${jsonName}`);

function fieldSchema(field: DescField): JsonSchema {
  switch (field.fieldKind) {
    case "scalar":
      return scalarSchema(field.scalar);
    case "enum":
      return enumSchema(field.enum);
    case "message":
      return messageSchema(field.message);
    case "list":
      return { type: "array", items: elementSchema(field) };
    case "map":
      return { type: "object", additionalProperties: elementSchema(field) };
  }
}

type Container = Extract<DescField, { fieldKind: "list" | "map" }>;

function elementSchema(field: Container): JsonSchema {
  if (field.message !== undefined) return messageSchema(field.message);
  if (field.enum !== undefined) return enumSchema(field.enum);
  return scalarSchema(field.scalar);
}

const enumSchema = ({ values }: { readonly values: readonly { readonly name: string }[] }): JsonSchema => ({
  type: "string",
  enum: values.map(({ name }) => name),
});

/** Numbers of 64 bits may be written as text, since JSON's numbers cannot hold them all. Those without a sign are small ones in practice. */
const INT64: JsonSchema = { anyOf: [{ type: "integer" }, { type: "string" }], "x-kubernetes-int-or-string": true };
const UINT64: JsonSchema = { type: "integer", minimum: 0 };
const UINT32: JsonSchema = { type: "integer", minimum: 0, maximum: 4_294_967_295 };
const INT32: JsonSchema = { type: "integer", format: "int32" };

function scalarSchema(scalar: ScalarType): JsonSchema {
  switch (scalar) {
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.BYTES:
      return { type: "string", format: "byte" };
    case ScalarType.DOUBLE:
      return { type: "number", format: "double" };
    case ScalarType.FLOAT:
      return { type: "number", format: "float" };
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return INT32;
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return UINT32;
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return UINT64;
    case ScalarType.STRING:
      return { type: "string" };
    default:
      return INT64;
  }
}

const nullable = (schema: JsonSchema): JsonSchema => ({ ...schema, nullable: true });
const ANYTHING: JsonSchema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

/** How protobuf's own messages look in JSON. A wrapper may be null, which is the same as leaving it out. */
const WELL_KNOWN: Readonly<Record<string, JsonSchema>> = {
  "google.protobuf.Duration": { type: "string" },
  "google.protobuf.Timestamp": { type: "string", format: "date-time" },
  "google.protobuf.Struct": ANYTHING,
  "google.protobuf.Any": ANYTHING,
  "google.protobuf.BoolValue": nullable({ type: "boolean" }),
  "google.protobuf.StringValue": nullable({ type: "string" }),
  "google.protobuf.BytesValue": nullable({ type: "string", format: "byte" }),
  "google.protobuf.DoubleValue": nullable({ type: "number", format: "double" }),
  "google.protobuf.FloatValue": nullable({ type: "number", format: "float" }),
  "google.protobuf.Int32Value": nullable(INT32),
  "google.protobuf.UInt32Value": nullable(UINT32),
  "google.protobuf.Int64Value": nullable(INT64),
  "google.protobuf.UInt64Value": nullable(UINT64),
};

/** Of the fields of a `oneof` at most one may be set. */
function choices({ oneofs }: DescMessage): Pick<JsonSchema, "oneOf" | "allOf"> {
  const each = oneofs.map(({ fields }) => {
    const given = fields.map(({ jsonName }): JsonSchema => ({ required: [jsonName] }));
    return { oneOf: [{ not: { anyOf: given } }, ...given] };
  });
  const [first] = each;
  return each.length > 1 ? { allOf: each } : (first ?? {});
}
