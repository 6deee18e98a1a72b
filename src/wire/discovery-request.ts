import { BinaryReader } from "@bufbuild/protobuf/wire";
import { eachField } from "./field-reader.ts";
import { textField } from "./field-writer.ts";
import { noteRanges, plainLists, RangeNotes, type RequestLists } from "./request-lists.ts";

/** A discovery request of either variant. Read by hand: a node that repeats itself is skipped, and nothing is built twice. */
export interface DiscoveryRequest {
  readonly typeUrl: string;
  /** The serialized `envoy.config.core.v3.Node`, where sent. */
  readonly node: Uint8Array | undefined;
  readonly nonce: string;
  /** Present: the response with this nonce was rejected. */
  readonly error: RequestError | undefined;
  /** State of the world: all names wanted. Delta: names to subscribe to. */
  readonly names: readonly string[];
  /** Delta only. */
  readonly unsubscribe: readonly string[];
  /** Delta only: what the client says it holds, on the first request for a type of a stream that replaces a broken one. */
  readonly initialVersions: ReadonlyMap<string, string>;
}

export interface RequestError {
  readonly code: number;
  readonly message: string;
}

/** Reads an `envoy.service.discovery.v3.DiscoveryRequest`. Throws on malformed bytes. */
export function readSotwRequest(bytes: Uint8Array, lists: RequestLists = plainLists): DiscoveryRequest {
  const request = emptyRequest();
  const { names } = startedNotes();
  eachField(bytes, (field, reader) => {
    if (field === 2) request.node = reader.bytes();
    else if (field === 3) noteRanges(bytes, { field, reader }, names);
    else if (field === 4) request.typeUrl = reader.string();
    else if (field === 5) request.nonce = reader.string();
    else if (field === 6) request.error = readStatus(reader.bytes());
    else return false;
    return true;
  });
  return { ...request, names: lists.names(bytes, names.take()), unsubscribe: [], initialVersions: NO_VERSIONS };
}

/** Reads an `envoy.service.discovery.v3.DeltaDiscoveryRequest`. Throws on malformed bytes. */
export function readDeltaRequest(bytes: Uint8Array, lists: RequestLists = plainLists): DiscoveryRequest {
  const request = emptyRequest();
  const { names, unsubscribe, versions } = startedNotes();
  eachField(bytes, (field, reader) => {
    if (field === 1) request.node = reader.bytes();
    else if (field === 2) request.typeUrl = reader.string();
    else if (field === 3) noteRanges(bytes, { field, reader }, names);
    else if (field === 4) noteRanges(bytes, { field, reader }, unsubscribe);
    else if (field === 5) noteRanges(bytes, { field, reader }, versions);
    else if (field === 6) request.nonce = reader.string();
    else if (field === 7) request.error = readStatus(reader.bytes());
    else return false;
    return true;
  });
  return {
    ...request,
    names: lists.names(bytes, names.take()),
    unsubscribe: lists.names(bytes, unsubscribe.take()),
    initialVersions: lists.versions(bytes, versions.take()),
  };
}

const TYPE_URL = { sotw: 4, delta: 2 } as const;

/** The type a request is for, without reading anything else; empty where it says none or cannot be read. */
export function requestedType(bytes: Uint8Array, variant: keyof typeof TYPE_URL): string {
  const reader = new BinaryReader(bytes);
  try {
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (field === TYPE_URL[variant]) return reader.string();
      reader.skip(wireType, field);
    }
  } catch {
    return "";
  }
  return "";
}

/**
 * The `DeltaDiscoveryRequest` by which a client accepts a response. Fields in the order of their numbers, as every implementation writes them: most requests
 * are these very bytes, and are known without being read.
 */
export const deltaAck = (typeUrl: string, nonce: string): Buffer => Buffer.concat([textField(2, typeUrl), textField(6, nonce)]);

const notes = { names: new RangeNotes(), unsubscribe: new RangeNotes(), versions: new RangeNotes() };

/** Notes of what is read now; those of a request that could not be read to its end are gone. */
function startedNotes(): typeof notes {
  for (const one of Object.values(notes)) one.take();
  return notes;
}

interface Draft {
  typeUrl: string;
  node: Uint8Array | undefined;
  nonce: string;
  error: RequestError | undefined;
}

const NO_VERSIONS: ReadonlyMap<string, string> = new Map();

const emptyRequest = (): Draft => ({ typeUrl: "", node: undefined, nonce: "", error: undefined });

/** The longest error text that is kept: Envoy's name the offenders first. */
const MAX_ERROR_TEXT = 16 * 1024;

function readStatus(bytes: Uint8Array): RequestError {
  let message = "";
  let code = 0;
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 1 && wireType === 0) code = reader.int32();
    else if (field === 2 && wireType === 2) message = reader.string().slice(0, MAX_ERROR_TEXT);
    else reader.skip(wireType, field);
  }
  return { code, message };
}
