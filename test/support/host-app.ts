// The programs of one host of a test: servers that remember what reached them, and a client. Runs as a process inside the host's network
// namespace and is told over an IPC channel what to do.
import { createServer } from "node:http";
import { createServer as createTcpServer, type Server } from "node:net";
import { type Answer, type Call, call, converse } from "./calls.ts";

/** What reached a server of a host. `from` is the address the connection came from; `peer` is what the proxy says of the caller's certificate. */
export interface HostHit {
  readonly url: string;
  readonly from: string;
  readonly peer?: string;
}

/** What can be asked of a host, and the answer to each. */
export interface HostCommands {
  /** Listens on all IPv4 addresses unless told. */
  http: { readonly ask: { readonly name: string; readonly port: number; readonly bind?: string }; readonly answer: null };
  tcp: { readonly ask: { readonly name: string; readonly port: number }; readonly answer: null };
  /** What reached the server on a port so far. */
  hits: { readonly ask: { readonly port: number }; readonly answer: readonly HostHit[] };
  call: { readonly ask: Call; readonly answer: Answer };
  converse: { readonly ask: Parameters<typeof converse>[0]; readonly answer: readonly string[] };
  fetch: { readonly ask: { readonly url: string }; readonly answer: string };
}

const hits = new Map<number, HostHit[]>();

const COMMANDS: { readonly [K in keyof HostCommands]: (ask: HostCommands[K]["ask"]) => Promise<HostCommands[K]["answer"]> } = {
  http({ name, port, bind }) {
    const server = createServer((request, response) => {
      const peer = String(request.headers["x-forwarded-client-cert"] ?? "");
      note(port, { url: request.url ?? "", from: request.socket.remoteAddress ?? "", ...(peer !== "" && { peer }) });
      response.writeHead(200, { "x-served-by": name }).end(name);
    });
    // A request that meets the end of an idle connection is answered with 503 by the proxy: connections are kept until the proxy ends them.
    server.keepAliveTimeout = 0;
    return listen(server, port, bind);
  },
  tcp({ name, port }) {
    const server = createTcpServer((socket) => {
      note(port, { url: "", from: socket.remoteAddress ?? "" });
      socket.on("error", () => {}).write(`${name}\n`);
      socket.on("data", (data) => socket.write(data));
    });
    return listen(server, port);
  },
  hits: async ({ port }) => hits.get(port) ?? [],
  call,
  converse,
  fetch: async ({ url }) => (await fetch(url)).text(),
};

function note(port: number, hit: HostHit): void {
  hits.set(port, [...(hits.get(port) ?? []), hit]);
}

const listen = (server: Server, port: number, bind = "0.0.0.0"): Promise<null> =>
  new Promise((resolve, reject) => server.once("error", reject).listen({ port, host: bind, ipv6Only: true }, () => resolve(null)));

async function answer<K extends keyof HostCommands>(id: number, command: K, ask: HostCommands[K]["ask"]): Promise<void> {
  try {
    process.send?.({ id, answer: await COMMANDS[command](ask) });
  } catch (error) {
    process.send?.({ id, error: error instanceof Error ? error.message : String(error) });
  }
}

process.on("message", ({ id, command, ask }: { id: number; command: keyof HostCommands; ask: never }) => void answer(id, command, ask));
process.on("disconnect", () => process.exit());
process.send?.({ id: 0, answer: null });
