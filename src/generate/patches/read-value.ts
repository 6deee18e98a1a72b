import { create, type DescMessage, fromJson, type JsonObject, type JsonValue, type Message, type Registry } from "@bufbuild/protobuf";
import { type Any, AnySchema } from "@bufbuild/protobuf/wkt";
import { scriptFaults } from "../../config/checks/lua/configs.ts";
import { readMessage } from "../../config/parse/read-message.ts";
import type { AnyReader } from "../../config/parse/reading.ts";
import type { FieldPath } from "../../config/problem.ts";
import { constraintFaults } from "../../envoy/patch/constraints.ts";
import type { ExtensionNeed } from "../../model/proxy.ts";
import { encode, typedStruct } from "../../wire/encode.ts";
import { typeUrlOf } from "../../wire/type-urls.ts";
import { kindFor } from "./extension-kinds.ts";

/** The content of a patch as a message. */
export interface PatchValue {
  readonly message: Message;
  /** What is wrong with it: it must not be used then. */
  readonly faults: readonly string[];
  /** What is passed over: fields that we have no descriptor for. */
  readonly notes: readonly string[];
  /** Extensions that the configurations inside are for. */
  readonly needs: readonly ExtensionNeed[];
}

export interface ReadingOptions {
  readonly registry: Registry;
  /** Whether the content is merged into something: then its parts must be typed. */
  readonly merging: boolean;
}

/** Types that wrap the JSON of another: Envoy converts them, and so do we where we can. */
const TYPED_STRUCTS: ReadonlySet<string> = new Set(["udpa.type.v1.TypedStruct", "xds.type.v3.TypedStruct"]);

/**
 * Reads the JSON of a patch. A configuration of a type that we have a descriptor for becomes that message; another, or one with fields newer
 * than our descriptors, is passed on as a TypedStruct, which Envoy converts by its own. Fields that cannot be passed on so are left out, as
 * Istio does, and noted.
 */
export function readValue(schema: DescMessage, json: JsonObject, { registry, merging }: ReadingOptions): PatchValue {
  const [faults, notes] = [new Set<string>(), new Set<string>()];
  const needs: ExtensionNeed[] = [];
  const report = (path: FieldPath, message: string): void => void faults.add(`${pathText(path)} ${message}`);
  const note = (path: FieldPath, message: string): void => void notes.add(`${pathText(path)}: ${message}`);

  const readAny: AnyReader = (any, reading, field) => {
    const { "@type": url, ...rest } = any as JsonObject;
    const named = nameOf(String(url));
    const wrapped = TYPED_STRUCTS.has(named) ? structContent(rest) : undefined;
    const type = wrapped === undefined ? named : nameOf(wrapped.typeUrl);
    const content = wrapped?.value ?? rest;
    needs.push({ type, kind: kindFor(field, reading.path) });
    const known = registry.getMessage(type);
    if (known === undefined) return typedStruct(`type.googleapis.com/${type}`, content);
    const unknown: string[] = [];
    const message = readMessage(known, ownForm(known, content), {
      path: reading.path,
      anyContent: readAny,
      unknownField: "schema.unknown-field",
      report: (code, path, text) => (code === "schema.unknown-field" ? unknown.push(`${pathText(path)}: ${text}`) : report(path, text)),
    });
    for (const { path, reason } of scriptFaults(message)) report([...reading.path, ...path], reason);
    if (!merging && (unknown.length > 0 || wrapped !== undefined)) {
      if (faults.size === 0)
        for (const { path, reason } of constraintFaults(known, message, registry))
          report(path === "" ? reading.path : [...reading.path, path], reason);
      const given = wrapped === undefined ? undefined : registry.getMessage(named);
      return given === undefined ? typedStruct(typeUrlOf(known), content) : packed(given, fromJson(given, rest));
    }
    for (const text of unknown) notes.add(`${text}; it is left out`);
    return packed(known, message);
  };

  const message = readMessage(schema, json, {
    path: [],
    anyContent: readAny,
    unknownField: "schema.unknown-field",
    report: (code, path, text) => (code === "schema.unknown-field" ? note(path, `${text}; it is left out`) : report(path, text)),
  });
  return { message, faults: [...faults], notes: [...notes], needs };
}

/** Messages with a JSON form of their own stand under `value` in an `Any`. */
function ownForm(schema: DescMessage, content: JsonObject): JsonValue | undefined {
  const special = schema.typeName.startsWith("google.protobuf.") && schema.typeName !== "google.protobuf.Empty";
  return special ? content.value : content;
}

function structContent(json: JsonObject): { readonly typeUrl: string; readonly value: JsonObject } | undefined {
  const url = json.type_url ?? json.typeUrl;
  const value = json.value ?? {};
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return typeof url === "string" && isObject ? { typeUrl: url, value } : undefined;
}

/** `read-message` holds messages as the library does, so they can be encoded. */
const packed = (schema: DescMessage, message: Message): Any =>
  create(AnySchema, { typeUrl: typeUrlOf(schema), value: encode(schema, message) });

const nameOf = (typeUrl: string): string => typeUrl.slice(typeUrl.lastIndexOf("/") + 1);

const pathText = (path: FieldPath): string =>
  path.reduce<string>((text, part) => (typeof part === "number" ? `${text}[${part}]` : text === "" ? part : `${text}.${part}`), "") ||
  "value";
