import { createServer, type ListenOptions, type Server, type Socket } from "node:net";
import { EdgeError, messageOf } from "../base/errors.ts";

/** An open port. */
export interface Listener {
  /** The port bound; 0 for a Unix socket. */
  readonly port: number;
  /** Accepts no more; connections stay. */
  close(): void;
}

/** Binds `host:port`, `[v6]:port`, `:port` (all addresses) or `unix:path` and hands connections on. Those beyond the limit are dropped as they come. */
export function openListener(address: string, maxConnections: number, accept: (socket: Socket) => void): Promise<Listener> {
  return bind(createServer({ noDelay: true }, accept), address, maxConnections);
}

/**
 * Connections that may wait to be accepted, as far as the system allows it. After a restart every proxy calls at once, and one that finds no room does not learn of it:
 * it waits for many seconds.
 */
const BACKLOG = 4_096;

/** Binds a server made elsewhere. */
export function bind(server: Server, address: string, maxConnections: number): Promise<Listener> {
  server.maxConnections = maxConnections;
  return new Promise((resolve, reject) => {
    server.once("error", (error) => {
      const hint = "another process may hold the address; set another one";
      reject(new EdgeError("port_taken", `cannot listen on ${address}: ${messageOf(error)}`, { cause: error, hint }));
    });
    server.listen({ ...listenOptions(address), backlog: BACKLOG }, () => resolve({ port: portOf(server), close: () => server.close() }));
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
