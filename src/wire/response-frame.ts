import { bodySize, type Encoded } from "./encoded.ts";
import { messageField, openField, textField } from "./field-writer.ts";
import type { MessageBytes, SharedBlocks } from "./shared-blocks.ts";

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
  for (const resource of resources) size += deltaEnvelope(resource).length + bodySize(resource);
  for (const name of removed) size += name.length + 4;
  return size;
}

/**
 * The parts of all resources, in sections that share well: of a resource that is kept in pieces the first and what precedes it are its own, while the
 * others often are those of many.
 */
function* sectionsOf(resources: readonly Encoded[], envelopeOf: (resource: Encoded) => Buffer): Iterable<readonly Uint8Array[]> {
  let whole: Uint8Array[] = [];
  for (const resource of resources) {
    if (resource.pieces === undefined) {
      whole.push(envelopeOf(resource), resource.body);
      continue;
    }
    const [own, ...shared] = resource.pieces;
    yield whole;
    yield own === undefined ? [envelopeOf(resource)] : [envelopeOf(resource), own];
    yield shared;
    whole = [];
  }
  yield whole;
}

const headOf = ({ version, typeUrl }: ResponseContent): readonly Buffer[] => [textField(1, version), textField(4, typeUrl)];

const deltaEnvelopes = new WeakMap<Encoded, Buffer>();
const sotwEnvelopes = new WeakMap<Encoded, Buffer>();

/** All that precedes the body in `resources` of a delta response: fields may come in any order, so the body is put last and needs no copy of its own. */
function deltaEnvelope(resource: Encoded): Buffer {
  let envelope = deltaEnvelopes.get(resource);
  if (envelope === undefined) {
    const any = anyHead(resource);
    const head = [textField(3, resource.name), textField(1, resource.version), openField(2, any.length + bodySize(resource)), any];
    const size = head.reduce((sum, part) => sum + part.length, bodySize(resource));
    envelope = Buffer.concat([openField(2, size), ...head]);
    deltaEnvelopes.set(resource, envelope);
  }
  return envelope;
}

function sotwEnvelope(resource: Encoded): Buffer {
  let envelope = sotwEnvelopes.get(resource);
  if (envelope === undefined) {
    const any = anyHead(resource);
    envelope = Buffer.concat([openField(2, any.length + bodySize(resource)), any]);
    sotwEnvelopes.set(resource, envelope);
  }
  return envelope;
}

const anyHead = (resource: Encoded): Buffer => Buffer.concat([textField(1, resource.typeUrl), openField(2, bodySize(resource))]);
