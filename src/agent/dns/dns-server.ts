import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { createServer, isIPv6, type Server, type Socket } from "node:net";
import { hostPort } from "../../base/address.ts";
import { messageOf } from "../../base/errors.ts";
import { listenError } from "../../base/listen-error.ts";
import type { Log } from "../../base/log.ts";
import type { Resolve } from "./resolver.ts";
import { FrameReader, frame } from "./tcp-frames.ts";

export interface DnsServerOptions {
  /** The first must be there; one of a family that the machine does not have is left out. */
  readonly addresses: readonly string[];
  /** 0 takes a free one. */
  readonly port: number;
  readonly resolve: Resolve;
  readonly log: Log;
}

/** Listens for questions over UDP and TCP on the same port. */
export interface DnsServer {
  readonly port: number;
  close(): void;
}

const MOST_CONNECTIONS = 256;
const MOST_UNANSWERED = 64;
const IDLE_MS = 10_000;
const NO_SUCH_FAMILY = /EADDRNOTAVAIL|EAFNOSUPPORT/;

/** Starts the server. Throws `EdgeError` where the port is taken. */
export async function startDnsServer(options: DnsServerOptions): Promise<DnsServer> {
  const closers: (() => void)[] = [];
  let { port } = options;
  for (const [index, address] of options.addresses.entries()) {
    try {
      const { server, bound } = await listenTcp(address, port, options);
      closers.push(() => server.close());
      port = bound;
      const socket = await listenUdp(address, port, options);
      closers.push(() => socket.close());
    } catch (error) {
      if (index > 0 && NO_SUCH_FAMILY.test(messageOf(error))) continue;
      for (const close of closers) close();
      throw listenError(hostPort(address, port), error, "address for names in DNS_PROXY_ADDR, or switch ISTIO_META_DNS_CAPTURE off");
    }
  }
  return {
    port,
    close() {
      for (const close of closers) close();
    },
  };
}

function listenUdp(address: string, port: number, { resolve, log }: DnsServerOptions): Promise<UdpSocket> {
  const socket = createSocket({ type: isIPv6(address) ? "udp6" : "udp4", ipv6Only: isIPv6(address) });
  socket.on("message", (message, from) => {
    resolve(message, "udp").then(
      (answer) => answer !== undefined && socket.send(answer, from.port, from.address, () => {}),
      (error: unknown) => log.warn({ reason: messageOf(error) }, "a question for a name could not be answered"),
    );
  });
  return new Promise((done, reject) => {
    socket.once("error", reject).bind(port, address, () => {
      socket.off("error", reject).on("error", (error) => log.warn({ reason: messageOf(error) }, "the port for names has a fault"));
      done(socket);
    });
  });
}

function listenTcp(address: string, port: number, options: DnsServerOptions): Promise<{ readonly server: Server; readonly bound: number }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    converse(socket, options);
  });
  server.maxConnections = MOST_CONNECTIONS;
  const close = server.close.bind(server);
  server.close = (done) => {
    for (const socket of sockets) socket.destroy();
    return close(done);
  };
  return new Promise((done, reject) => {
    server.once("error", reject).listen({ port, host: address, ipv6Only: isIPv6(address) }, () => {
      const bound = server.address();
      done({ server, bound: typeof bound === "object" && bound !== null ? bound.port : port });
    });
  });
}

/** Several questions on one connection are answered as the answers come; one who asks without listening is not heard further. */
function converse(socket: Socket, { resolve, log }: DnsServerOptions): void {
  const frames = new FrameReader();
  let unanswered = 0;
  socket.setTimeout(IDLE_MS, () => socket.destroy());
  socket.on("error", () => {});
  socket.on("data", (bytes) => {
    for (const message of frames.push(bytes)) {
      unanswered += 1;
      if (unanswered > MOST_UNANSWERED) return void socket.destroy();
      resolve(message, "tcp").then(
        (answer) => {
          if (answer === undefined || socket.destroyed) return void socket.destroy();
          socket.write(frame(answer), () => {
            unanswered -= 1;
          });
        },
        (error: unknown) => {
          log.warn({ reason: messageOf(error) }, "a question for a name could not be answered");
          socket.destroy();
        },
      );
    }
  });
}
