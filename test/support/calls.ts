import { type IncomingHttpHeaders, request } from "node:http";
import { connect } from "node:net";

/** One HTTP request as a client sends it to a proxy. */
export interface Call {
  readonly port: number;
  /** Address to connect to; loopback unless told. */
  readonly address?: string;
  /** Address that the client calls from; the system's choice unless told. */
  readonly from?: string;
  /** The Host header: which service is meant. */
  readonly host: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The server that answered, by the name it was given; empty where the proxy itself did. */
  readonly by: string;
}

const CALL_TIMEOUT_MS = 30_000;

/** Makes one request on a connection of its own, so that nothing but the configuration of the moment decides where it goes. */
export function call({ port, address = "127.0.0.1", from, host, path = "/", method = "GET", headers = {} }: Call): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: address, port, localAddress: from, path, method, headers: { ...headers, host }, agent: false, timeout: CALL_TIMEOUT_MS },
      (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (text: string) => {
          body += text;
        });
        response.on("error", reject).on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body,
            by: String(response.headers["x-served-by"] ?? ""),
          }),
        );
      },
    );
    sent.on("timeout", () => sent.destroy(new Error(`no answer from ${address}:${port} in ${CALL_TIMEOUT_MS} ms`)));
    sent.on("error", reject).end();
  });
}

/** Makes many requests, eight at a time, and counts who answered; a proxy's own answers are counted as `status 503`. */
export async function tally(count: number, target: Call): Promise<Readonly<Record<string, number>>> {
  const counts: Record<string, number> = {};
  const lane = async (share: number): Promise<void> => {
    for (let made = 0; made < share; made++) {
      const answer = await call(target);
      const who = answer.by || `status ${answer.status}`;
      counts[who] = (counts[who] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, index) => lane(Math.floor((count + index) / 8))));
  return counts;
}

/** Sends lines to a TCP server and gives the first `lines` lines it says; what comes before a premature end is the error's text. */
export function converse({
  port,
  address = "127.0.0.1",
  from,
  say = "",
  lines,
}: {
  readonly port: number;
  readonly address?: string;
  readonly from?: string;
  readonly say?: string;
  readonly lines: number;
}): Promise<readonly string[]> {
  return new Promise((resolve, reject) => {
    let heard = "";
    const socket = connect({ port, host: address, localAddress: from }, () => socket.write(say));
    socket.setTimeout(CALL_TIMEOUT_MS, () => socket.destroy(new Error(`heard only ${JSON.stringify(heard)} in ${CALL_TIMEOUT_MS} ms`)));
    socket.on("data", (chunk) => {
      heard += chunk.toString();
      const complete = heard.split("\n").slice(0, -1);
      if (complete.length < lines) return;
      socket.destroy();
      resolve(complete.slice(0, lines));
    });
    socket.on("error", reject).on("close", () => reject(new Error(`the connection ended after ${JSON.stringify(heard)}`)));
  });
}
