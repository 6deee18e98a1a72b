import { BinaryReader } from "@bufbuild/protobuf/wire";
import { eachField } from "../../wire/field-reader.ts";
import { bytesField, messageField, textField } from "../../wire/field-writer.ts";
import { rewriteFields } from "../../wire/rewrite-fields.ts";

/**
 * The parts of Envoy's messages that matter here, by field number: `TypedExtensionConfig` (name 1, typed_config 2), its `Any` (type_url 1, value 2),
 * `Wasm` (config 1), `PluginConfig` (vm_config 3, fail_open 5, failure_policy 7), `VmConfig` (code 3, environment_variables 7), `AsyncDataSource`
 * (local 1, remote 2), `RemoteDataSource` (http_uri 1, sha256 2), `HttpUri` (uri 1, timeout 3), `EnvironmentVariables` (key_values 2).
 */
const HTTP_WASM = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm";
const NETWORK_WASM = "type.googleapis.com/envoy.extensions.filters.network.wasm.v3.Wasm";
const HTTP_RBAC = "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC";
const NETWORK_RBAC = "type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC";

/** `PluginConfig.FailurePolicy.FAIL_OPEN`. */
const FAIL_OPEN = 3;
/** What the control plane tells the agent stands among the module's variables, under this prefix; modules never see it. */
const FOR_THE_AGENT = "ISTIO_META_";

/** A module that a resource names and somebody has to fetch. */
export interface RemoteModule {
  readonly filter: "http" | "network";
  readonly url: string;
  /** Hex; empty where any content will do. */
  readonly sha256: string;
  readonly timeoutMs: number | undefined;
  /** What Envoy is to do without the module: let all through, or nothing. */
  readonly failOpen: boolean;
  /** Docker's `config.json`; undefined where none is needed, empty where one is and could not be had. */
  readonly pullSecret: string | undefined;
  readonly pullPolicy: "IfNotPresent" | "Always" | undefined;
  /** Version of the object the module is named in. */
  readonly resourceVersion: string;
}

/** Reads a serialized `TypedExtensionConfig`; undefined where it names no module elsewhere. Throws on malformed bytes. */
export function readRemoteModule(config: Uint8Array): RemoteModule | undefined {
  const { typeUrl, value } = readAny(contentOf(config, 2));
  if (typeUrl !== HTTP_WASM && typeUrl !== NETWORK_WASM) return undefined;
  const plugin = contentOf(value, 1);
  const vm = contentOf(plugin, 3);
  const remote = contentOf(contentOf(vm, 3), 2);
  if (remote.length === 0) return undefined;
  const uri = contentOf(remote, 1);
  const variables = readVariables(contentOf(vm, 7));
  const policy = variables.get(`${FOR_THE_AGENT}WASM_IMAGE_PULL_POLICY`);
  const sha256 = textOf(remote, 2);
  return {
    filter: typeUrl === HTTP_WASM ? "http" : "network",
    url: textOf(uri, 1),
    // Istio's control plane writes "nil" where none is given, since Envoy refuses an empty one.
    sha256: sha256 === "nil" ? "" : sha256.toLowerCase(),
    timeoutMs: readDuration(contentOf(uri, 3)),
    failOpen: failsOpen(plugin),
    pullSecret: variables.get(`${FOR_THE_AGENT}WASM_IMAGE_PULL_SECRET`),
    pullPolicy: policy === "Always" || policy === "IfNotPresent" ? policy : undefined,
    resourceVersion: variables.get(`${FOR_THE_AGENT}WASM_PLUGIN_RESOURCE_VERSION`) ?? "",
  };
}

/** The same configuration with the module in a file, and without what was for the agent alone. */
export function withLocalModule(config: Uint8Array, file: string): Buffer {
  const code = bytesField(1, textField(1, file)); // AsyncDataSource.local, DataSource.filename
  const vm = (content: Uint8Array): Uint8Array =>
    rewriteFields(content, (field, part) => (field === 3 ? code : field === 7 ? ownVariables(part) : part));
  const plugin = (content: Uint8Array): Uint8Array => rewriteFields(content, (field, part) => (field === 3 ? vm(part) : part));
  const wasm = (content: Uint8Array): Uint8Array => rewriteFields(content, (field, part) => (field === 1 ? plugin(part) : part));
  return rewriteFields(config, (field, part) =>
    field === 2 ? rewriteFields(part, (inner, value) => (inner === 2 ? wasm(value) : value)) : part,
  );
}

/**
 * What stands in for a module that cannot be had: a filter that lets all through, or nothing, as the module's own word on failures is. A
 * configuration that Envoy refuses would leave the filter without any, and then nothing passes either way.
 */
export function standIn(config: Uint8Array, { filter, failOpen }: Pick<RemoteModule, "filter" | "failOpen">): Buffer {
  const rules = failOpen ? [] : [bytesField(1, new Uint8Array())];
  const prefix = filter === "network" ? [textField(3, "extension.")] : [];
  const any = [textField(1, filter === "http" ? HTTP_RBAC : NETWORK_RBAC), messageField(2, [...rules, ...prefix])];
  return rewriteFields(config, (field, part) => (field === 2 ? Buffer.concat(any) : part));
}

function contentOf(bytes: Uint8Array, wanted: number): Uint8Array {
  let found: Uint8Array = new Uint8Array();
  eachField(bytes, (field, reader) => {
    if (field !== wanted) return false;
    found = reader.bytes();
    return true;
  });
  return found;
}

const textOf = (bytes: Uint8Array, field: number): string => Buffer.from(contentOf(bytes, field)).toString("utf8");

const readAny = (any: Uint8Array): { readonly typeUrl: string; readonly value: Uint8Array } => ({
  typeUrl: textOf(any, 1),
  value: contentOf(any, 2),
});

function readVariables(bytes: Uint8Array): ReadonlyMap<string, string> {
  const variables = new Map<string, string>();
  eachField(bytes, (field, reader) => {
    if (field !== 2) return false;
    const entry = reader.bytes();
    variables.set(textOf(entry, 1), textOf(entry, 2));
    return true;
  });
  return variables;
}

/** Undefined takes the field out, where nothing is left in it. */
function ownVariables(bytes: Uint8Array): Uint8Array | undefined {
  const own = rewriteFields(bytes, (field, part) => (field === 2 && textOf(part, 1).startsWith(FOR_THE_AGENT) ? undefined : part));
  return own.length === 0 ? undefined : own;
}

/** The newer field counts where it is set; the older one is a flag. */
function failsOpen(plugin: Uint8Array): boolean {
  const { 5: flag = 0, 7: policy = 0 } = numbersOf(plugin);
  return policy === 0 ? flag === 1 : policy === FAIL_OPEN;
}

function readDuration(bytes: Uint8Array): number | undefined {
  const { 1: seconds = 0, 2: nanos = 0 } = numbersOf(bytes);
  const ms = seconds * 1_000 + nanos / 1e6;
  return ms > 0 ? ms : undefined;
}

/** Fields that are whole numbers. */
function numbersOf(bytes: Uint8Array): Readonly<Record<number, number>> {
  const numbers: Record<number, number> = {};
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (wireType === 0) numbers[field] = Number(reader.uint64());
    else reader.skip(wireType, field);
  }
  return numbers;
}
