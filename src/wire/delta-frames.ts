import type { RequestError } from "./discovery-request.ts";
import { eachField } from "./field-reader.ts";
import { bytesField, messageField, numberField, textField } from "./field-writer.ts";

/** One resource of a delta response as it came: who passes it on need not know what it is. */
export interface DeltaResource {
  readonly name: string;
  readonly version: string;
  /** The serialized `envoy.service.discovery.v3.Resource`: name, version and body. */
  readonly bytes: Uint8Array;
}

export interface DeltaResponse {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly resources: readonly DeltaResource[];
  readonly removed: readonly string[];
}

/** Reads an `envoy.service.discovery.v3.DeltaDiscoveryResponse` without looking into resources. Throws on malformed bytes. */
export function readDeltaResponse(bytes: Uint8Array): DeltaResponse {
  const response = { typeUrl: "", nonce: "", resources: [] as DeltaResource[], removed: [] as string[] };
  eachField(bytes, (field, reader) => {
    if (field === 2) response.resources.push(readDeltaResource(reader.bytes()));
    else if (field === 4) response.typeUrl = reader.string();
    else if (field === 5) response.nonce = reader.string();
    else if (field === 6) response.removed.push(reader.string());
    else return false;
    return true;
  });
  return response;
}

/** Reads name and version of a serialized `Resource`. */
export function readDeltaResource(bytes: Uint8Array): DeltaResource {
  const resource = { name: "", version: "", bytes };
  eachField(bytes, (field, reader) => {
    if (field === 1) resource.version = reader.string();
    else if (field === 3) resource.name = reader.string();
    else return false;
    return true;
  });
  return resource;
}

/** The message inside a serialized `Resource`, out of its `Any`. */
export function bodyOfResource(resource: Uint8Array): Uint8Array {
  let any: Uint8Array = new Uint8Array();
  eachField(resource, (field, reader) => {
    if (field !== 2) return false;
    any = reader.bytes();
    return true;
  });
  return valueOfAny(any);
}

/** The serialized message inside an `Any`. */
export function valueOfAny(any: Uint8Array): Uint8Array {
  let value: Uint8Array = new Uint8Array();
  eachField(any, (field, reader) => {
    if (field !== 2) return false;
    value = reader.bytes();
    return true;
  });
  return value;
}

/** Writes a delta response. `resources` are serialized `Resource` messages. */
export function deltaResponseBytes(response: {
  readonly typeUrl: string;
  readonly nonce: string;
  readonly resources: readonly Uint8Array[];
  readonly removed: readonly string[];
}): Buffer {
  return Buffer.concat([
    ...response.resources.map((resource) => bytesField(2, resource)),
    textField(4, response.typeUrl),
    textField(5, response.nonce),
    ...response.removed.map((name) => textField(6, name)),
  ]);
}

/** What a delta client may say; all but the type may be left out. */
export interface DeltaRequestParts {
  readonly typeUrl: string;
  readonly node?: Uint8Array | undefined;
  readonly subscribe?: Iterable<string>;
  readonly unsubscribe?: Iterable<string>;
  readonly initialVersions?: Iterable<readonly [name: string, version: string]>;
  readonly nonce?: string;
  readonly error?: RequestError;
}

/** Writes an `envoy.service.discovery.v3.DeltaDiscoveryRequest`. */
export function deltaRequestBytes(request: DeltaRequestParts): Buffer {
  return Buffer.concat([
    ...(request.node === undefined ? [] : [bytesField(1, request.node)]),
    textField(2, request.typeUrl),
    ...Array.from(request.subscribe ?? [], (name) => textField(3, name)),
    ...Array.from(request.unsubscribe ?? [], (name) => textField(4, name)),
    ...Array.from(request.initialVersions ?? [], ([name, version]) => messageField(5, [textField(1, name), textField(2, version)])),
    textField(6, request.nonce ?? ""),
    ...(request.error === undefined ? [] : [bytesField(7, statusBytes(request.error))]),
  ]);
}

/** Bytes of a `google.rpc.Status`. */
export const statusBytes = ({ code, message }: RequestError): Buffer => Buffer.concat([numberField(1, code), textField(2, message)]);
