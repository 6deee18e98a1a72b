import {
  createRegistry,
  type DescFile,
  type DescMessage,
  fromBinary,
  type JsonValue,
  type Message,
  type Registry,
  toJson,
} from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import type { Encoded } from "./encoded.ts";

let loading: Promise<Registry> | undefined;

/** Every generated message of Envoy and Istio. Loaded when first asked for: only dumps need it, and it is most of the code. */
export function messageRegistry(): Promise<Registry> {
  loading ??= import("../gen/all-files.js").then(({ allFiles }) => createRegistry(...withImports(allFiles)));
  return loading;
}

/** The JSON of a message with the content of each `Any` shown; of one we have no descriptor for, only its type, rather than failing the dump. */
export function messageJson(registry: Registry, schema: DescMessage, message: Message): JsonValue {
  return toJson(schema, message, { registry: tolerant(registry) });
}

/** The JSON of a resource as sent, `@type` first as in Envoy's own dumps. */
export function encodedJson(registry: Registry, resource: Pick<Encoded, "typeUrl" | "body">): JsonValue {
  const schema = registry.getMessage(typeNameOf(resource.typeUrl));
  if (schema === undefined) return { "@type": resource.typeUrl, value: Buffer.from(resource.body).toString("base64") };
  const json = messageJson(registry, schema, fromBinary(schema, resource.body));
  const isObject = typeof json === "object" && json !== null && !Array.isArray(json);
  return isObject ? { "@type": resource.typeUrl, ...json } : { "@type": resource.typeUrl, value: json };
}

/** An unknown type inside an `Any` is read as an empty message, whose JSON is its `@type` alone. */
function tolerant(registry: Registry): Registry {
  const unknown = (typeName: string): DescMessage => Object.create(EmptySchema, { typeName: { value: typeName } }) as DescMessage;
  return {
    ...registry,
    [Symbol.iterator]: () => registry[Symbol.iterator](),
    getMessage: (typeName) => registry.getMessage(typeName) ?? unknown(typeName),
  };
}

function withImports(files: readonly DescFile[]): readonly DescFile[] {
  const all = new Set(files);
  for (const file of all) for (const imported of file.dependencies) all.add(imported);
  return [...all];
}

const typeNameOf = (typeUrl: string): string => typeUrl.slice(typeUrl.lastIndexOf("/") + 1);
