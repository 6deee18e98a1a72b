import { createServer as createHttpServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { createServer as createTcpServer, type Server, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export interface Hit {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
}

/** A real HTTP server that remembers what reached it: tests assert at the receiving end. */
export interface EchoServer {
  readonly name: string;
  readonly port: number;
  readonly hits: Hit[];
  /** Requests since the last call. */
  take(): number;
}

export interface EchoOptions {
  readonly host?: string;
  readonly port?: number;
  /** The status of the next answer. */
  readonly status?: () => number;
  /** Never answers. */
  readonly hangs?: boolean;
}

export async function httpEcho(name: string, options: EchoOptions = {}): Promise<EchoServer> {
  const hits: Hit[] = [];
  let counted = 0;
  const server = createHttpServer((request, response) => {
    hits.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers });
    if (options.hangs === true) return;
    response.writeHead(options.status?.() ?? 200, { "content-type": "application/json", "x-served-by": name });
    response.end(JSON.stringify({ name, method: request.method, url: request.url, headers: request.headers }));
  });
  // A request that meets the end of an idle connection is answered with 503 by the proxy: connections are kept until the proxy ends them.
  server.keepAliveTimeout = 0;
  const port = await listen(server, options.host ?? "127.0.0.1", options.port ?? 0);
  return {
    name,
    port,
    hits,
    take() {
      const fresh = hits.length - counted;
      counted = hits.length;
      return fresh;
    },
  };
}

/** A TCP server that greets with its name and echoes lines: server-first, so that protocol detection is tried too. */
export async function tcpEcho(
  name: string,
  options: { readonly host?: string; readonly port?: number } = {},
): Promise<{ readonly port: number; readonly connections: () => number }> {
  let connections = 0;
  const server = createTcpServer((socket) => {
    connections += 1;
    socket.on("error", () => {});
    socket.write(`${name}\n`);
    socket.on("data", (data) => socket.write(data));
  });
  return { port: await listen(server, options.host ?? "127.0.0.1", options.port ?? 0), connections: () => connections };
}

/** Connections that are open when the test ends are cut: not everybody between a client and here says goodbye. */
async function listen(server: Server, host: string, port: number): Promise<number> {
  const open = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, host, resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const socket of open) socket.destroy();
      }),
  );
  return (server.address() as AddressInfo).port;
}
