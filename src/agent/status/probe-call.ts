import type { IncomingMessage, RequestOptions } from "node:http";
import type { Readable } from "node:stream";
import type { TLSSocket } from "node:tls";
import { isIp } from "../../base/address.ts";
import { request } from "../node-http.ts";

/** One call of an application, as a probe makes it. */
export interface ProbeCall {
  readonly host: string;
  readonly port: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly localAddress?: string;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** What came of it; the body is still to be read, and the connection to be closed after that. */
export interface ProbeAnswer {
  readonly status: number;
  readonly location: string | undefined;
  readonly body: Readable;
  close(): void;
}

/** Asks in plaintext. */
export const askPlainly = (call: ProbeCall): Promise<ProbeAnswer> => askOverHttp1(call, { agent: false });

/** Asks over TLS, in HTTP/2 where the server prefers it, as the kubelet does: there are some that speak nothing else. Certificates of probes are not verified. */
export async function askOverTls(call: ProbeCall): Promise<ProbeAnswer> {
  const socket = await connectTls(call);
  return socket.alpnProtocol === "h2" ? askOverHttp2(call, socket) : askOverHttp1(call, { createConnection: () => socket });
}

function connectTls({ host, port, headers, localAddress, signal }: ProbeCall): Promise<TLSSocket> {
  const named = (headers.host ?? "").replace(/:\d+$/, "");
  const socket = process.getBuiltinModule("node:tls").connect({
    host,
    port,
    ...(named !== "" && !isIp(named) && !named.startsWith("[") && { servername: named }),
    ...(localAddress !== undefined && { localAddress }),
    ALPNProtocols: ["h2", "http/1.1"],
    rejectUnauthorized: false,
  });
  const end = (): void => void socket.destroy(new Error("it took too long"));
  signal.addEventListener("abort", end, { once: true });
  return new Promise((resolve, reject) => {
    socket.once("close", () => signal.removeEventListener("abort", end));
    socket.once("secureConnect", () => resolve(socket)).once("error", reject);
  });
}

/** A connection of one's own counts only where nothing is said of agents. */
function askOverHttp1(call: ProbeCall, connection: Pick<RequestOptions, "agent" | "createConnection">): Promise<ProbeAnswer> {
  return new Promise((resolve, reject) => {
    const sent = request({ ...call, ...connection }, (response: IncomingMessage) =>
      resolve({
        status: response.statusCode ?? 0,
        location: response.headers.location,
        body: response,
        close: () => void sent.destroy(),
      }),
    );
    sent.on("error", reject).end();
  });
}

function askOverHttp2({ headers: { host = "", ...headers }, path }: ProbeCall, socket: TLSSocket): Promise<ProbeAnswer> {
  return new Promise((resolve, reject) => {
    const session = process.getBuiltinModule("node:http2").connect("https://application", { createConnection: () => socket });
    session.on("error", reject);
    const stream = session.request({ ":method": "GET", ":path": path, ...(host !== "" && { ":authority": host }), ...headers });
    stream.on("error", reject).on("response", (answer) =>
      resolve({
        status: Number(answer[":status"]),
        location: answer.location,
        body: stream,
        close: () => session.destroy(),
      }),
    );
    stream.end();
  });
}
