import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect as connectPlain, type Socket } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { describe, it, onTestFinished } from "vitest";
import { selfSigned } from "../../test/support/tls-server.ts";
import { eventually } from "../../test/support/wait.ts";
import { Secret } from "../base/secret.ts";
import { openPort } from "./listener.ts";
import type { Misbehaviour } from "./misbehaviour.ts";
import { serveTls } from "./tls-listener.ts";

const KB = 1024;

interface Served {
  readonly port: number;
  readonly sockets: Socket[];
  readonly misbehaved: Misbehaviour[];
}

/** Serves TLS as istiod does; `taken` is told what each client sends. */
async function serve(taken: (socket: Socket, bytes: Buffer) => void = () => {}): Promise<Served> {
  const { cert, key } = await selfSigned("localhost");
  const current = { chain: cert.toString(), key: new Secret(key.toString()), clientRoots: [] };
  const [sockets, misbehaved]: [Socket[], Misbehaviour[]] = [[], []];
  const listener = serveTls({
    port: await openPort("127.0.0.1:0", 1_000),
    tls: { current, follow: () => () => {} },
    accept(socket) {
      sockets.push(socket);
      socket.on("error", () => {}).on("data", (bytes: Buffer) => taken(socket, bytes));
    },
    misbehaved: (how) => void misbehaved.push(how),
  });
  onTestFinished(() => {
    listener.close();
    for (const socket of sockets) socket.destroy();
  });
  return { port: listener.port, sockets, misbehaved };
}

async function client(port: number, maxVersion: "TLSv1.2" | "TLSv1.3" = "TLSv1.3"): Promise<TLSSocket> {
  const socket = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["h2"], maxVersion });
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket;
}

/** Other bytes for each client. */
function contentOf(index: number, size: number): Buffer {
  const content = Buffer.alloc(size);
  for (let at = 0; at < size; at++) content[at] = (index * 37 + at + (at >> 9)) % 251;
  return content;
}

/** What TLS itself holds, outside of JavaScript's heap. */
function tlsBytes(): number {
  const { external, arrayBuffers } = process.memoryUsage();
  return external - arrayBuffers;
}

/** Clients in a process of their own, so that what they hold is not counted here. They send so many bytes each and stay. */
function clientsElsewhere(port: number, count: number, size: number): void {
  const script = `const { connect } = require("node:tls");
    for (let i = 0; i < ${count}; i++) connect({ port: ${port}, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["h2"] }).write(Buffer.alloc(${size}));`;
  const child = spawn(process.execPath, ["-e", script], { stdio: "ignore" });
  onTestFinished(() => void child.kill());
}

describe("what comes over TLS", () => {
  it("is each client's own, in order, however it is cut and however many send at once", async () => {
    const taken = new Map<Socket, Buffer[]>();
    const { port } = await serve((socket, bytes) => taken.set(socket, [...(taken.get(socket) ?? []), bytes]));
    const sizes = [1, 100, 1_023, 1_024, 1_025, 16_383, 16_384, 16_385, 65_536, 100_000, 700_001];
    const send = async (index: number): Promise<void> => {
      const socket = await client(port, index % 2 === 0 ? "TLSv1.3" : "TLSv1.2");
      const content = contentOf(index, sizes[index % sizes.length] ?? 0);
      const step = [content.length, 1_000, 20_000][index % 3] ?? 1;
      for (let at = 0; at < content.length; at += Math.max(1, step)) socket.write(content.subarray(at, at + step));
    };
    await Promise.all(Array.from({ length: 2 * sizes.length }, (_, index) => send(index)));
    const wanted = Array.from({ length: 2 * sizes.length }, (_, index) =>
      contentOf(index, sizes[index % sizes.length] ?? 0).toString("hex"),
    );
    await eventually("all is there", () => {
      const came = [...taken.values()].map((pieces) => Buffer.concat(pieces).toString("hex"));
      return came.length === wanted.length && came.sort().join() === wanted.sort().join();
    });
  });

  it("takes no buffer of each connection that is as long as the longest read", async () => {
    const [count, size] = [40, 200 * KB];
    let came = 0;
    const { port } = await serve((_, bytes) => {
      came += bytes.length;
    });
    const before = tlsBytes();
    clientsElsewhere(port, count, size);
    await eventually("all is there", () => came === count * size);
    const each = (tlsBytes() - before) / count;
    assert.ok(each < 32 * KB, `${Math.round(each / KB)} KB for each connection`);
  });

  it("ends with the connection, whoever ends it and however", async () => {
    const { port, sockets } = await serve();
    const over = async (end: (socket: TLSSocket) => void): Promise<void> => {
      const socket = await client(port);
      await eventually("it is served", () => sockets.length > 0);
      const [served] = sockets.splice(0);
      const closed = once(served ?? socket, "close");
      end(socket);
      await closed;
    };
    await over((socket) => socket.end());
    await over((socket) => socket.destroy());
    await over((socket) => (socket as TLSSocket & { readonly _parent?: Socket })._parent?.resetAndDestroy() ?? socket.destroy());
  });

  it("is told of, where it is no TLS or does not come at all", async () => {
    const { port, misbehaved } = await serve();
    const stranger = connectPlain(port, "127.0.0.1", () => stranger.write("GET / HTTP/1.1\r\n\r\n")).on("error", () => {});
    await eventually("noise is noticed", () => misbehaved.includes("tls handshake"));
    const silent = connectPlain(port, "127.0.0.1").on("error", () => {});
    onTestFinished(() => void silent.destroy());
    await once(silent, "close");
    assert.deepEqual(misbehaved, ["tls handshake", "handshake timeout"]);
  });
});
