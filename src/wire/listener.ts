import { createServer, type ListenOptions, type Server, type Socket } from "node:net";
import { EdgeError, messageOf } from "../base/errors.ts";

/** Accepts connections and hands them on. Keeps hold of them, so that one peer's can be cut without a word: a peer that does not read cannot be told. */
export interface Listener {
  /** The port bound; 0 for a Unix socket. */
  readonly port: number;
  /** Cuts the connection of a peer (`address:port`), if there is one. */
  abort(peer: string): void;
  /** Bytes the network has taken for a peer so far; undefined for one that is not here. */
  written(peer: string): number | undefined;
  /** Accepts no more; connections stay. */
  close(): void;
}

/** Binds `host:port`, `[v6]:port`, `:port` (all addresses) or `unix:path`. Connections beyond the limit are dropped as they come. */
export function openListener(address: string, maxConnections: number, accept: (socket: Socket) => void): Promise<Listener> {
  const sockets = new Map<string, Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    const peer = `${socket.remoteAddress}:${socket.remotePort}`;
    sockets.set(peer, socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(peer));
    accept(socket);
  });
  server.maxConnections = maxConnections;
  return new Promise((resolve, reject) => {
    server.once("error", (error) => {
      const hint = "another process may hold the address; set another one";
      reject(new EdgeError("port_taken", `cannot listen on ${address}: ${messageOf(error)}`, { cause: error, hint }));
    });
    server.listen(listenOptions(address), () => {
      resolve({
        port: portOf(server),
        abort: (peer) => sockets.get(peer)?.destroy(),
        written: (peer) => taken(sockets.get(peer)),
        close: () => server.close(),
      });
    });
  });
}

const taken = (socket: Socket | undefined): number | undefined =>
  socket === undefined ? undefined : socket.bytesWritten - socket.writableLength;

function listenOptions(address: string): ListenOptions {
  if (address.startsWith("unix:")) return { path: address.slice("unix:".length).replace(/^\/\/(?=\/)/, "") };
  const colon = address.lastIndexOf(":");
  const host = address.slice(0, Math.max(0, colon)).replace(/^\[(.*)\]$/, "$1");
  const port = Number(address.slice(colon + 1));
  return host === "" ? { port } : { host, port };
}

function portOf(server: Server): number {
  const bound = server.address();
  return typeof bound === "object" && bound !== null ? bound.port : 0;
}
