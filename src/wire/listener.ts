import { createServer, type ListenOptions, type Server, type Socket } from "node:net";
import { EdgeError, messageOf } from "../base/errors.ts";

/** An open port. */
export interface Listener {
  /** The port bound; 0 for a Unix socket. */
  readonly port: number;
  /** Accepts no more; connections stay. */
  close(): void;
}

/** A port that nobody serves yet. Closed before it is served, those who wait are cut. */
export interface OpenPort extends Listener {
  /** Hands on those who wait and all who come from now on. Called once. */
  serve(accept: (socket: Socket) => void): void;
}

/**
 * Connections that may wait to be accepted, as far as the system allows it. After a restart every proxy calls at once, and one that finds no room does not learn of it:
 * it waits for many seconds.
 */
const BACKLOG = 4_096;

/**
 * Binds `host:port`, `[v6]:port`, `:port` (all addresses) or `unix:path`. Who connects is held, unread, until there is somebody to serve it, so that a
 * port can be open before its server is there. Connections beyond the limit are dropped as they come.
 */
export function openPort(address: string, maxConnections: number): Promise<OpenPort> {
  const held = new Set<Socket>();
  const hold = (socket: Socket): void => {
    held.add(socket);
    socket.once("error", () => {}).once("close", () => held.delete(socket));
  };
  const server = createServer({ noDelay: true, pauseOnConnect: true }).on("connection", hold);
  server.maxConnections = maxConnections;
  return new Promise((resolve, reject) => {
    server.once("error", (error) => {
      const isTaken = "code" in error && error.code === "EADDRINUSE";
      const hint = isTaken ? "another process may hold the address; set another one" : "let this user listen there, or set another address";
      reject(new EdgeError("port_taken", `cannot listen on ${address}: ${messageOf(error)}`, { cause: error, hint }));
    });
    server.listen({ ...listenOptions(address), backlog: BACKLOG }, () =>
      resolve({
        port: portOf(server),
        serve(accept) {
          const begin = (socket: Socket): void => {
            socket.read(0); // It begins to be read, and whoever takes it over has the first byte.
            accept(socket);
          };
          server.off("connection", hold).on("connection", begin);
          for (const socket of held) if (!socket.destroyed) begin(socket);
          held.clear();
        },
        close() {
          server.close();
          for (const socket of held) socket.destroy();
        },
      }),
    );
  });
}

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
