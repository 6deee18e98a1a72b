import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { messageOf } from "../base/errors.ts";
import { listenError } from "../base/listen-error.ts";
import type { Log } from "../base/log.ts";
import { createServer } from "./node-http.ts";

/** A page of the agent's own port. */
export interface StatusRoute {
  readonly path: string;
  readonly method?: "GET" | "POST";
  /** Only programs on this machine may ask. */
  readonly local?: true;
  handle(request: IncomingMessage, response: ServerResponse): void | Promise<void>;
}

export interface StatusServer {
  readonly port: number;
  close(): void;
}

const LOOPBACK = /^(127\.|::1$|::ffff:127\.)/;
const PATIENCE_MS = 30_000;

/** Serves readiness and whatever else parts of the agent have to tell (port 15020). `routes` may grow while it runs. */
export function startStatusServer(port: number, routes: readonly StatusRoute[], log: Log): Promise<StatusServer> {
  const server: Server = createServer((request, response) => {
    const path = (request.url ?? "").split("?")[0];
    const found = routes.filter((route) => route.path === path);
    const route = found.find(({ method = "GET" }) => method === request.method || (method === "GET" && request.method === "HEAD"));
    if (route === undefined) return refuse(response, found.length === 0 ? 404 : 405);
    if (route.local === true && !LOOPBACK.test(request.socket.remoteAddress ?? "")) return refuse(response, 403);
    answer(route, request, response).catch((error: unknown) => {
      log.warn({ path, reason: messageOf(error) }, "a page could not be served");
      if (!response.headersSent) refuse(response, 500);
      else response.destroy();
    });
  });
  server.requestTimeout = PATIENCE_MS;
  return new Promise((resolve, reject) => {
    server.once("error", (cause) => reject(listenError(`port ${port}`, cause, "statusPort in PROXY_CONFIG")));
    server.listen(port, () => {
      const bound = server.address();
      resolve({ port: typeof bound === "object" && bound !== null ? bound.port : port, close: () => closeAll(server) });
    });
  });
}

/** What a page throws before its first wait comes as a rejection too. */
async function answer(route: StatusRoute, request: IncomingMessage, response: ServerResponse): Promise<void> {
  await route.handle(request, response);
}

const refuse = (response: ServerResponse, status: number): void => void response.writeHead(status).end();

function closeAll(server: Server): void {
  server.close();
  server.closeAllConnections();
}
