/**
 * A resource as it goes over the wire. Encoded once, shared by every stream that is sent it, never modified.
 * `version` is a hash of the body, so equal content has equal versions in every replica and after a restart.
 */
export interface Encoded {
  readonly typeUrl: string;
  readonly name: string;
  readonly version: string;
  /** The serialized message itself (not wrapped in an Any). */
  readonly body: Uint8Array;
  /** Where the body is made of pieces that other resources share: those pieces. `body` then puts them together anew each time it is asked for. */
  readonly pieces?: readonly Uint8Array[];
}

/** Length of the body, without putting it together. */
export function bodySize(resource: Encoded): number {
  if (resource.pieces === undefined) return resource.body.length;
  let size = 0;
  for (const piece of resource.pieces) size += piece.length;
  return size;
}

/** A set of resources of one type, offered to every proxy that agrees on what they were made from. Identity means equality. */
export interface ResourceSet {
  readonly resources: ReadonlyMap<string, Encoded>;
  /** Names whose generator threw: they are neither changed nor removed for those who hold them. */
  readonly failed: readonly FailedResource[];
}

export interface FailedResource {
  readonly name: string;
  readonly message: string;
  /** What others were served must not stand in for it: who may have it is not known yet. */
  readonly standIn?: "own";
}
