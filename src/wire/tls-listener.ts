import { constants } from "node:crypto";
import type { Socket } from "node:net";
import { createServer, type SecureContextOptions } from "node:tls";
import type { Secret } from "../base/secret.ts";
import { bind, type Listener } from "./listener.ts";

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

export interface TlsListenerOptions {
  readonly address: string;
  readonly maxConnections: number;
  readonly tls: TlsCredentials;
  accept(socket: Socket): void;
}

/** A handshake takes milliseconds; those that only hold a socket open are cut after this. */
const HANDSHAKE_MS = 5_000;

/**
 * Binds an address for HTTP/2 over TLS. New certificates count for new connections at once. Sessions are not resumed: each connection shows its
 * certificate anew, so that one that was good under old roots is judged by those in force.
 */
export async function openTlsListener({ address, maxConnections, tls, accept }: TlsListenerOptions): Promise<Listener> {
  const server = createServer({
    ...contextOf(tls.current),
    requestCert: true,
    rejectUnauthorized: false,
    ALPNProtocols: ["h2"],
    handshakeTimeout: HANDSHAKE_MS,
    noDelay: true,
  });
  server.on("secureConnection", accept);
  server.on("tlsClientError", (_, socket) => socket.destroy());
  const stop = tls.follow((material) => server.setSecureContext(contextOf(material)));
  try {
    const listener = await bind(server, address, maxConnections);
    return {
      port: listener.port,
      close() {
        stop();
        listener.close();
      },
    };
  } catch (error) {
    stop();
    throw error;
  }
}

const contextOf = ({ chain, key, clientRoots }: TlsMaterial): SecureContextOptions => ({
  cert: chain,
  key: key.reveal(),
  ca: [...clientRoots],
  minVersion: "TLSv1.2",
  secureOptions: constants.SSL_OP_NO_TICKET | constants.SSL_OP_NO_RENEGOTIATION,
});
