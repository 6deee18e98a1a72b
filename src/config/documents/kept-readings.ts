import { DefaultDeserializer, DefaultSerializer } from "node:v8";
import { contentHash } from "../../base/hash.ts";
import type { ConfigObject, RawObject } from "../object.ts";
import type { ReadResult } from "../read-object.ts";
import type { Judged } from "../store/judge.ts";
import { type DocumentShape, ONE_OBJECT } from "./read-documents.ts";

/** What reading a document brought, for the next start of the same program. */
export interface Reading {
  /** Of the document's text. */
  readonly digest: string;
  /** Namespace for objects that carry none, which is the only other thing the outcome depends on. */
  readonly namespace: string | undefined;
  readonly object: ConfigObject;
}

/**
 * The reading of a judged document that is worth keeping: of a file, of one object, without a fault, so that nothing of where it stands is part of
 * the outcome; and of Istio's own kinds, whose form is plain data. Secrets are not among them, and never lie there.
 */
export function readingOf(judged: Pick<Judged, "digest" | "namespace" | "object" | "problems" | "origin">): Reading | undefined {
  const { digest, namespace, object, problems, origin } = judged;
  if (digest === undefined || digest.includes("/") || object === undefined) return undefined;
  if (problems.length > 0 || origin.file === undefined || object.cluster !== undefined || !object.group.endsWith("istio.io"))
    return undefined;
  return { digest, namespace, object };
}

/** Readings of an earlier start, in place of reading. */
export class KeptReadings {
  readonly #readings = new Map<string, Reading>();
  #taken = 0;

  constructor(readings: Iterable<Reading>) {
    for (const reading of readings) this.#readings.set(reading.digest, reading);
  }

  /** How many there are. */
  get size(): number {
    return this.#readings.size;
  }

  /** How many were taken instead of reading. */
  get taken(): number {
    return this.#taken;
  }

  /** The shape of a document by the digest of its text. */
  get(digest: string): DocumentShape | undefined {
    return this.#readings.has(digest) ? ONE_OBJECT : undefined;
  }

  /** Reads as `read` does, without reading what is known. */
  reader(read: (raw: RawObject) => ReadResult): (raw: RawObject) => ReadResult {
    return (raw) => {
      const reading = raw.digest === undefined || raw.origin.file === undefined ? undefined : this.#readings.get(raw.digest);
      if (reading === undefined || reading.namespace !== raw.defaultNamespace || raw.cluster !== undefined) return read(raw);
      this.#taken += 1;
      const { kind, namespace, name } = reading.object;
      return { object: reading.object, ref: { kind, namespace, name }, problems: [] };
    };
  }

  /** Lets go of all of them: documents that come later are read. */
  forget(): void {
    this.#readings.clear();
  }
}

/** Writes readings as bytes that only the same build of the program takes. The caller may rest after each reading; the bytes come at the end. */
export function* writeReadings(build: string, readings: Iterable<Reading>): Generator<void, NonSharedBuffer> {
  const serializer = new DefaultSerializer();
  serializer.writeRawBytes(Buffer.alloc(HEAD_BYTES));
  serializer.writeHeader();
  for (const reading of readings) {
    serializer.writeValue(reading);
    yield;
  }
  serializer.writeValue(undefined);
  const bytes = serializer.releaseBuffer();
  bytes.write(headOf(build, bytes.subarray(HEAD_BYTES)));
  return bytes;
}

/** Reads them again; none where another build wrote them, or where a single byte is not as it was written. */
export function readReadings(build: string, bytes: Buffer): readonly Reading[] {
  const body = bytes.subarray(HEAD_BYTES);
  if (bytes.subarray(0, HEAD_BYTES).toString() !== headOf(build, body)) return [];
  const deserializer = new DefaultDeserializer(body);
  deserializer.readHeader();
  const readings: Reading[] = [];
  for (let value: unknown = deserializer.readValue(); value !== undefined; value = deserializer.readValue())
    readings.push(value as Reading);
  return readings;
}

const headOf = (build: string, body: Uint8Array): string => `${contentHash(build)}${contentHash(body)}`;
const HEAD_BYTES = 32;
