import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { connect, isIPv6 } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { questionKey, RCODE, readHeader } from "./dns-message.ts";
import { FrameReader, frame } from "./tcp-frames.ts";

/** How a question came, and so how it is passed on. */
export type DnsTransport = "udp" | "tcp";

/** A server of the machine. */
export interface UpstreamServer {
  readonly address: string;
  readonly port: number;
}

export interface UpstreamOptions {
  /** Servers of the moment, in the order of resolv.conf. */
  servers(): Promise<readonly UpstreamServer[]>;
  readonly clock: Clock;
  /** How long one server may take before the next is asked. */
  readonly timeoutMs: number;
  /** Ask all servers at once and take the first answer. */
  readonly parallel: boolean;
  /** Most questions under way at the same time: each takes a socket. */
  readonly atMost: number;
}

/** Asks the machine's own servers. */
export interface Upstream {
  /** Gives the answer as it came, with the id of the question; undefined where nobody answers or too many questions are under way. */
  ask(query: Uint8Array, transport: DnsTransport): Promise<Buffer | undefined>;
}

const ROUNDS = 2;
/** How long one that did not answer is asked last. */
const AVOID_MS = 30_000;
const REFUSALS: readonly number[] = [RCODE.SERVFAIL, RCODE.NOTIMP, RCODE.REFUSED];

/**
 * Servers are asked in order, the next after a time-out, a failure or a refusal, those that were silent of late last. A question over TCP is asked over TCP, and over
 * UDP where a server takes no TCP. Each has an id and a socket of its own, and only the right server's answer to the right question is taken.
 */
export function createUpstream(options: UpstreamOptions): Upstream {
  const { clock, timeoutMs } = options;
  const failedAt = new Map<string, number>();
  let underWay = 0;
  const attempt = async (server: UpstreamServer, query: Uint8Array, transport: DnsTransport): Promise<Buffer | undefined> => {
    const exchange = { server, query: Buffer.from(query), clock, timeoutMs };
    const answer = await (transport === "udp" ? overUdp(exchange) : overTcp(exchange));
    if (answer === undefined) failedAt.set(server.address, clock.monotonic());
    else failedAt.delete(server.address);
    return answer;
  };
  const failing = ({ address }: UpstreamServer): boolean =>
    clock.monotonic() - (failedAt.get(address) ?? Number.NEGATIVE_INFINITY) < AVOID_MS;
  const inOrder = (servers: readonly UpstreamServer[]): readonly UpstreamServer[] => [
    ...servers.filter((server) => !failing(server)),
    ...servers.filter(failing),
  ];
  const askOne = async (server: UpstreamServer, query: Uint8Array, transport: DnsTransport): Promise<Buffer | undefined> =>
    (await attempt(server, query, transport)) ?? (transport === "tcp" ? attempt(server, query, "udp") : undefined);
  return {
    async ask(query, transport) {
      if (underWay >= options.atMost) return undefined;
      underWay += 1;
      try {
        const servers = await options.servers();
        if (options.parallel) return await firstOf(servers.map((server) => askOne(server, query, transport)));
        let refusal: Buffer | undefined;
        for (let round = 0; round < ROUNDS && refusal === undefined; round++)
          for (const server of inOrder(servers)) {
            // Nobody waits for silent servers who has an answer, even if it is none.
            if (refusal !== undefined && failing(server)) break;
            const answer = await askOne(server, query, transport);
            if (answer !== undefined && !isRefusal(answer)) return answer;
            refusal ??= answer;
          }
        return refusal;
      } finally {
        underWay -= 1;
      }
    },
  };
}

/** A server that does not serve the name, or cannot: another one may, as the resolvers of programs think too. */
const isRefusal = (answer: Buffer): boolean => REFUSALS.includes(readHeader(answer)?.rcode ?? RCODE.NOERROR);

async function firstOf(answers: readonly Promise<Buffer | undefined>[]): Promise<Buffer | undefined> {
  const of = async (answer: Promise<Buffer | undefined>, counts: (bytes: Buffer) => boolean): Promise<Buffer> => {
    const bytes = await answer;
    return bytes !== undefined && counts(bytes) ? bytes : Promise.reject();
  };
  return Promise.any(answers.map((answer) => of(answer, (bytes) => !isRefusal(bytes))))
    .catch(() => Promise.any(answers.map((answer) => of(answer, () => true))))
    .catch(() => undefined);
}

interface Exchange {
  readonly server: UpstreamServer;
  readonly query: Buffer;
  readonly clock: Clock;
  readonly timeoutMs: number;
}

/** Nobody outside can guess the id and the port, and so put in an answer of his own. */
function disguised(query: Buffer): { readonly sent: Buffer; take(answer: Buffer): Buffer | undefined } {
  const id = randomInt(0x10000);
  const sent = Buffer.from(query);
  sent.writeUInt16BE(id, 0);
  const asked = questionKey(query);
  return {
    sent,
    take(answer) {
      const header = readHeader(answer);
      if (header === undefined || !header.isResponse || header.id !== id || questionKey(answer) !== asked) return undefined;
      const own = Buffer.from(answer);
      own.writeUInt16BE(query.readUInt16BE(0), 0);
      return own;
    },
  };
}

function overUdp({ server, query, clock, timeoutMs }: Exchange): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const { sent, take } = disguised(query);
    const socket = createSocket(isIPv6(server.address) ? "udp6" : "udp4");
    const end = (answer: Buffer | undefined): void => {
      cancel();
      socket.removeAllListeners().on("error", () => {});
      socket.close();
      resolve(answer);
    };
    const cancel = clock.after(timeoutMs, () => end(undefined));
    socket.on("error", () => end(undefined));
    socket.on("message", (bytes) => {
      const answer = take(bytes);
      if (answer !== undefined) end(answer);
    });
    // Connected: the kernel drops what others send, and tells when nobody listens there.
    socket.connect(server.port, server.address, () => socket.send(sent));
  });
}

function overTcp({ server, query, clock, timeoutMs }: Exchange): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const { sent, take } = disguised(query);
    const frames = new FrameReader();
    const socket = connect(server.port, server.address, () => socket.write(frame(sent)));
    const end = (answer: Buffer | undefined): void => {
      cancel();
      socket.destroy();
      resolve(answer);
    };
    const cancel = clock.after(timeoutMs, () => end(undefined));
    socket.on("error", () => end(undefined)).on("close", () => end(undefined));
    socket.on("data", (bytes) => {
      for (const message of frames.push(bytes)) {
        const answer = take(message);
        if (answer !== undefined) return end(answer);
      }
    });
  });
}
