import { constants } from "node:crypto";
import type { Socket } from "node:net";
import { createServer, type SecureContextOptions } from "node:tls";
import type { Secret } from "../base/secret.ts";
import type { Listener, OpenPort } from "./listener.ts";
import type { Misbehaviour } from "./misbehaviour.ts";
import { trustAnchors } from "./trust-anchors.ts";

/** Certificates in PEM as they are at the moment; `changed` is called with the new ones from then on. */
export interface TlsCredentials {
  readonly current: TlsMaterial;
  /** Gives a function that stops it. */
  follow(changed: (material: TlsMaterial) => void): () => void;
}

export interface TlsMaterial {
  /** The server's certificate and its intermediates. */
  readonly chain: string;
  readonly key: Secret<string>;
  /** What certificates of clients are verified with; a client need not show one. */
  readonly clientRoots: readonly string[];
}

export interface TlsOptions {
  readonly port: OpenPort;
  readonly tls: TlsCredentials;
  accept(socket: Socket): void;
  misbehaved(how: Misbehaviour): void;
}

/** Ciphers with forward secrecy that authenticate what they encrypt, the cheapest first; the last ones are for clients whose processors know no AES. */
const CIPHERS: readonly string[] = [
  "TLS_AES_128_GCM_SHA256",
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "ECDHE-ECDSA-AES128-GCM-SHA256",
  "ECDHE-RSA-AES128-GCM-SHA256",
  "ECDHE-ECDSA-AES256-GCM-SHA384",
  "ECDHE-RSA-AES256-GCM-SHA384",
  "ECDHE-ECDSA-CHACHA20-POLY1305",
  "ECDHE-RSA-CHACHA20-POLY1305",
];

/** A handshake takes milliseconds; those that only hold a socket open are cut after this. */
const HANDSHAKE_MS = 5_000;

/**
 * Serves a port with HTTP/2 over TLS. New certificates count for new connections at once. Sessions are not resumed: each connection shows its
 * certificate anew, so that one that was good under old roots is judged by those in force.
 */
export function serveTls({ port, tls, accept, misbehaved }: TlsOptions): Listener {
  const server = createServer({
    ...contextOf(tls.current),
    requestCert: true,
    rejectUnauthorized: false,
    ALPNProtocols: ["h2"],
    handshakeTimeout: HANDSHAKE_MS,
  });
  server.on("secureConnection", accept);
  server.on("tlsClientError", (error: NodeJS.ErrnoException, socket) => {
    misbehaved(error.code === "ERR_TLS_HANDSHAKE_TIMEOUT" ? "handshake timeout" : "tls handshake");
    socket.destroy();
  });
  const stop = tls.follow((material) => server.setSecureContext(contextOf(material)));
  port.serve((socket) => {
    whenHeard(
      socket,
      () => server.emit("connection", socket),
      () => misbehaved("handshake timeout"),
    );
  });
  return {
    port: port.port,
    close() {
      stop();
      port.close();
    },
  };
}

/**
 * Calls `heard` when a client has said something, which is then still in the socket: a TLS socket takes it from there into memory that it makes as large as that. Were it there
 * before the first byte, it would make as much as the longest read could bring, 64 KB, for as long as the connection lasts.
 */
function whenHeard(socket: Socket, heard: () => void, silent: () => void): void {
  socket.on("error", () => socket.destroy());
  socket.setTimeout(HANDSHAKE_MS, () => {
    silent();
    socket.destroy();
  });
  socket.once("readable", () => {
    socket.setTimeout(0);
    if (socket.readableLength > 0) heard();
    else socket.destroy();
  });
}

const contextOf = ({ chain, key, clientRoots }: TlsMaterial): SecureContextOptions => ({
  cert: chain,
  key: key.reveal(),
  ca: [...trustAnchors(clientRoots)],
  minVersion: "TLSv1.2",
  ciphers: CIPHERS.join(":"),
  honorCipherOrder: true,
  secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
});
