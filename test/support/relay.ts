import { chmod } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { tempDir } from "./cleanup.ts";
import { FRAME, FRAME_HEAD } from "./http2-frames.ts";

/** A relay between two programs that can cut the wire at a chosen moment. */
export interface Relay {
  /** Port on loopback; 0 when it listens on a Unix socket. */
  readonly port: number;
  /** Cuts the wire right after the next whole response of this type has passed; resolves when that happened. New connections are let through. */
  cutAfter(typeUrl: string): Promise<void>;
  /** Carries nothing more on connections that are open, and tells nobody; new ones are let through. */
  freeze(): void;
  /** Leads to another port from now on: what is open is cut. */
  pointAt(port: number): void;
}

/** A Unix socket that leads to a port on loopback, for proxies of any user in any network namespace. */
export async function relaySocket(port: number): Promise<string> {
  const directory = await tempDir();
  await chmod(directory, 0o755);
  const socket = join(directory, "xds.sock");
  await startRelay({ to: port, at: socket });
  await chmod(socket, 0o666);
  return socket;
}

export interface RelayOptions {
  readonly to: number;
  /** The Unix socket to listen on. */
  readonly at?: string;
  /** How long what clients send is under way. */
  readonly delayMs?: number;
}

/** Relays to a port on loopback, from a port of its own or from a Unix socket, which reaches across network namespaces. */
export async function startRelay({ to, at, delayMs = 0 }: RelayOptions): Promise<Relay> {
  const open = new Set<Socket>();
  const frozen = new WeakSet<Socket>();
  let target = to;
  let armed: { readonly typeUrl: string; readonly done: () => void } | undefined;
  const server = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    for (const socket of [client, upstream]) {
      open.add(socket.on("error", () => {}).on("close", () => open.delete(socket)));
    }
    const end = (): void => void [client, upstream].map((socket) => socket.destroySoon());
    const forward = (bytes: Buffer): void => void (frozen.has(client) || upstream.destroyed || upstream.write(bytes));
    client.on("data", (bytes) => (delayMs === 0 ? forward(bytes) : systemClock.after(delayMs, () => forward(bytes)))).on("close", end);
    const responses = responseReader();
    upstream.on("close", end).on("data", (bytes: Buffer) => {
      if (frozen.has(upstream)) return;
      const wanted = armed;
      const passed = responses(bytes, wanted?.typeUrl);
      client.write(passed === undefined ? bytes : bytes.subarray(0, passed));
      if (passed === undefined) return;
      armed = undefined;
      upstream.destroy();
      end();
      wanted?.done();
    });
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(at ?? { port: 0, host: "127.0.0.1" }, resolve));
  onTestFinished(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    cutAfter: (typeUrl) =>
      new Promise((done) => {
        armed = { typeUrl, done };
      }),
    freeze() {
      for (const socket of open) frozen.add(socket);
    },
    pointAt(port) {
      target = port;
      for (const socket of open) socket.destroy();
    },
  };
}

const GRPC_HEAD = 5;

/**
 * Follows the HTTP/2 frames of one direction. Given the type of a response to look for, tells how many bytes of this chunk there are up to the
 * end of the first one that has arrived in full. Enough of HTTP/2 and gRPC for a server that neither pads nor compresses.
 */
function responseReader(): (chunk: Buffer, typeUrl: string | undefined) => number | undefined {
  let bytes = Buffer.alloc(0);
  const messages = new Map<number, Buffer>();
  return (chunk, typeUrl) => {
    const before = bytes.length;
    bytes = Buffer.concat([bytes, chunk]);
    let at = 0;
    let found: number | undefined;
    while (bytes.length - at >= FRAME_HEAD && bytes.length - at >= FRAME_HEAD + bytes.readUIntBE(at, 3)) {
      const end = at + FRAME_HEAD + bytes.readUIntBE(at, 3);
      if (bytes[at + 3] === FRAME.data) {
        const stream = bytes.readUInt32BE(at + 5);
        const { complete, rest } = splitMessages(
          Buffer.concat([messages.get(stream) ?? Buffer.alloc(0), bytes.subarray(at + FRAME_HEAD, end)]),
        );
        messages.set(stream, rest);
        if (typeUrl !== undefined && complete.some((message) => message.includes(typeUrl))) found ??= end - before;
      }
      at = end;
    }
    bytes = bytes.subarray(at);
    return found;
  };
}

function splitMessages(data: Buffer): { readonly complete: readonly Buffer[]; readonly rest: Buffer } {
  const complete: Buffer[] = [];
  let at = 0;
  while (data.length - at >= GRPC_HEAD && data.length - at >= GRPC_HEAD + data.readUInt32BE(at + 1)) {
    const end = at + GRPC_HEAD + data.readUInt32BE(at + 1);
    complete.push(data.subarray(at + GRPC_HEAD, end));
    at = end;
  }
  return { complete, rest: data.subarray(at) };
}
