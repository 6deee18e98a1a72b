import { X509Certificate } from "node:crypto";
import type { Peer } from "../../wire/discovery-stream.ts";

/** The header in which Envoy says which certificate the client showed. */
const HEADER = "x-forwarded-client-cert";

/**
 * Who is behind the Envoy in front of us: it has verified the client's certificate and puts it into a header, where it leaves nothing that the
 * client wrote there itself. Only for callers on the Unix socket, which nobody but our own user can open; elsewhere the header means nothing.
 */
export function forwardedPeer(peer: Peer): Peer {
  const certificate = certificateIn(peer.header(HEADER));
  return {
    ...peer,
    address: peer.header("x-forwarded-for")?.split(",").at(-1)?.trim() || peer.address,
    header: (name) => peer.header(name),
    certificate,
  };
}

/** The certificate of the last element: the one that the Envoy which called us added. */
function certificateIn(header: string | undefined): Uint8Array | undefined {
  const text = /(?:^|;)Cert="([^"]*)"/i.exec(header?.split(",").at(-1) ?? "")?.[1];
  if (text === undefined) return undefined;
  try {
    return new X509Certificate(decodeURIComponent(text)).raw;
  } catch {
    return undefined;
  }
}
