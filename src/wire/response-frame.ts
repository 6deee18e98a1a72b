import { bodySize, type Encoded } from "./encoded.ts";
import { messageField, textField } from "./field-writer.ts";
import type { MessageBytes, SharedBlocks } from "./shared-blocks.ts";
import { TailBuffer } from "./tail-buffer.ts";

/** What a response carries. `removed` is said in words only by the delta variant; state-of-the-world clients infer it. */
export interface ResponseContent {
  readonly typeUrl: string;
  /** `system_version_info` or `version_info`. */
  readonly version: string;
  readonly resources: readonly Encoded[];
  readonly removed: readonly string[];
  readonly nonce: string;
  readonly controlPlane: string;
}

/**
 * A DeltaDiscoveryResponse put together from bodies encoded long before: a message is the concatenation of its fields, so each resource costs
 * its small envelope, which is made once per resource, and a copy, which responses of much the same content share.
 */
export function deltaResponse(content: ResponseContent, blocks: SharedBlocks): MessageBytes {
  const tail = [
    textField(5, content.nonce),
    ...content.removed.map((name) => textField(6, name)),
    messageField(7, [textField(1, content.controlPlane)]),
  ];
  return blocks.assemble([headOf(content), ...sectionsOf(content.resources, deltaEnvelope), tail]);
}

/** A DiscoveryResponse, in the same way. */
export function sotwResponse(content: ResponseContent, blocks: SharedBlocks): MessageBytes {
  const tail = [textField(5, content.nonce), messageField(6, [textField(1, content.controlPlane)])];
  return blocks.assemble([headOf(content), ...sectionsOf(content.resources, sotwEnvelope), tail]);
}

/** Bytes a response with these resources takes, but for a few; known without building it. */
export function responseSize(resources: readonly Encoded[], removed: readonly string[]): number {
  let size = 128;
  for (const resource of resources) size += deltaEnvelope(resource).whole;
  for (const name of removed) size += name.length + 4;
  return size;
}

/**
 * The parts of all resources, in sections that share well: of a resource that is kept in pieces the first and what precedes it are its own, while the
 * others often are those of many.
 */
function sectionsOf(resources: readonly Encoded[], envelopeOf: (resource: Encoded) => Envelope): readonly (readonly Uint8Array[])[] {
  let whole: Uint8Array[] = [];
  const sections = [whole];
  for (const resource of resources) {
    const { head } = envelopeOf(resource);
    if (resource.pieces === undefined) {
      whole.push(head, resource.body);
      continue;
    }
    whole = [];
    sections.push([head, ...resource.pieces.slice(0, 1)], resource.pieces.slice(1), whole);
  }
  return sections;
}

const headOf = ({ version, typeUrl }: ResponseContent): readonly Buffer[] => [textField(1, version), textField(4, typeUrl)];

/** What precedes the body of a resource in a response. Fields may come in any order, so the body is put last and needs no copy of its own. */
interface Envelope {
  readonly head: Uint8Array;
  /** Length of both. */
  readonly whole: number;
}

const deltaEnvelopes = new WeakMap<Encoded, Envelope>();
const sotwEnvelopes = new WeakMap<Encoded, Envelope>();

/** As in `resources` of a delta response. */
function deltaEnvelope(resource: Encoded): Envelope {
  const known = deltaEnvelopes.get(resource);
  if (known !== undefined) return known;
  const body = bodySize(resource);
  openAny(resource, body);
  out.varint(out.size + body);
  out.byte(DELTA_RESOURCE_TAG);
  out.text(resource.version);
  out.byte(DELTA_VERSION_TAG);
  out.text(resource.name);
  out.byte(DELTA_NAME_TAG);
  return kept(deltaEnvelopes, resource, body);
}

/** As in `resources` of a response of all the world. */
function sotwEnvelope(resource: Encoded): Envelope {
  const known = sotwEnvelopes.get(resource);
  if (known !== undefined) return known;
  const body = bodySize(resource);
  openAny(resource, body);
  return kept(sotwEnvelopes, resource, body);
}

const [DELTA_VERSION_TAG, DELTA_RESOURCE_TAG, DELTA_NAME_TAG] = [0x0a, 0x12, 0x1a];
const [TYPE_URL_TAG, VALUE_TAG] = [0x0a, 0x12];
/** Of `resources`, in both variants. */
const RESOURCES_TAG = 0x12;

const out = new TailBuffer();

/** Writes all of an `Any` that precedes the body. */
function openAny({ typeUrl }: Encoded, body: number): void {
  out.clear();
  out.varint(body);
  out.byte(VALUE_TAG);
  out.text(typeUrl);
  out.byte(TYPE_URL_TAG);
}

function kept(envelopes: WeakMap<Encoded, Envelope>, resource: Encoded, body: number): Envelope {
  out.varint(out.size + body);
  out.byte(RESOURCES_TAG);
  const head = out.toBytes();
  const envelope = { head, whole: head.length + body };
  envelopes.set(resource, envelope);
  return envelope;
}
