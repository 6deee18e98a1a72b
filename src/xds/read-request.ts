import { type DiscoveryRequest, readDeltaRequest, readSotwRequest } from "../wire/discovery-request.ts";
import type { DiscoveryStream } from "../wire/discovery-stream.ts";
import type { RequestLists } from "../wire/request-lists.ts";
import { shortTypeName } from "../wire/type-urls.ts";

/** Reads a request as its stream means it: a stream that is for one type serves no other. Throws what is wrong with the bytes. */
export function readRequest(
  bytes: Uint8Array,
  { variant, typeUrl: only }: Pick<DiscoveryStream, "variant" | "typeUrl">,
  lists: RequestLists,
): DiscoveryRequest {
  const read = variant === "delta" ? readDeltaRequest(bytes, lists) : readSotwRequest(bytes, lists);
  const typeUrl = only ?? read.typeUrl;
  if (read.typeUrl !== "" && read.typeUrl !== typeUrl) throw new Error(`${shortTypeName(typeUrl)} only is served here`);
  return { ...read, typeUrl };
}
