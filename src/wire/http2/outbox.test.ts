import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { connect, createServer, type TLSSocket } from "node:tls";
import { describe, it, onTestFinished } from "vitest";
import { selfSigned } from "../../../test/support/tls-server.ts";
import { eventually } from "../../../test/support/wait.ts";
import { systemClock } from "../../base/clock.ts";
import { SharedPace } from "../shared-pace.ts";
import { headerFrames, SETTING, settingsFrame, windowUpdateFrame } from "./frame.ts";
import { headerBlock } from "./hpack.ts";
import { ServerSession } from "./server-session.ts";

const OK = headerBlock([[":status", "200"]]);
const END = headerBlock([["x-end", "yes"]]);
const REQUEST = headerBlock([
  [":method", "POST"],
  [":scheme", "https"],
  [":path", "/"],
  ["x-client", "1"],
]);
const MB = 1024 * 1024;

/** Other bytes for each client, and other ones in each of its frames. */
function contentFor(client: number, size: number): Buffer {
  const content = Buffer.alloc(size);
  for (let at = 0; at < size; at++) content[at] = (client * 31 + at + (at >> 9)) % 251;
  return content;
}

/** Sends each client so much of its own over TLS, in buffers that are no frames. Gives the port, and the sockets of the server. */
async function serve(size: number): Promise<{ readonly port: number; readonly sockets: TLSSocket[] }> {
  const pace = new SharedPace();
  const sockets: TLSSocket[] = [];
  const server = createServer({ ...(await selfSigned("localhost")), ALPNProtocols: ["h2"] }, (socket) => {
    sockets.push(socket);
    void new ServerSession(socket, {
      maxStreams: 100,
      clock: systemClock,
      pace,
      opened(stream) {
        stream.listen({ content() {}, finished() {}, closed() {} });
        const content = contentFor(Number(stream.head.get("x-client")), size);
        stream.respond(OK);
        stream.write([content.subarray(0, 100_001), content.subarray(100_001)], () => {});
        stream.end(END, () => {});
      },
      failed() {},
      closed() {},
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { port: (server.address() as AddressInfo).port, sockets };
}

function request(port: number, client: number): http2.ClientHttp2Stream {
  const session = http2.connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false, settings: { initialWindowSize: 32 * MB } });
  session.on("error", () => {});
  session.once("connect", () => session.setLocalWindowSize(32 * MB));
  onTestFinished(() => void session.destroy());
  const stream = session.request({ ":method": "POST", "x-client": String(client) });
  stream.on("error", () => {});
  stream.end();
  return stream;
}

describe("what is sent over TLS", () => {
  it("is each client's own, however many are sent to at once and however slowly some read", async () => {
    const { port } = await serve(3 * MB);
    const read = async (client: number): Promise<void> => {
      const chunks: Buffer[] = [];
      for await (const chunk of request(port, client) as AsyncIterable<Buffer>) {
        chunks.push(chunk);
        if (client % 3 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      }
      assert.ok(Buffer.concat(chunks).equals(contentFor(client, 3 * MB)), `what client ${client} was sent`);
    };
    await Promise.all(Array.from({ length: 24 }, (_, client) => read(client)));
  });

  it("is encrypted no sooner than it can go: a client that does not read costs little", async () => {
    const size = 30 * MB;
    const { port, sockets } = await serve(size);
    const client = connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["h2"] });
    onTestFinished(() => void client.destroy());
    await once(client, "secureConnect");
    const windows = [settingsFrame([[SETTING.INITIAL_WINDOW_SIZE, 64 * MB]]), windowUpdateFrame(0, 64 * MB)];
    client.write(Buffer.concat([Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ...windows, headerFrames(1, REQUEST, true)]));
    client.pause();
    await eventually("it begins", () => (sockets[0]?.bytesWritten ?? 0) > 100_000);
    let before = -1;
    await eventually("it stands still", async () => {
      const now = sockets[0]?.bytesWritten ?? 0;
      const still = now === before;
      before = now;
      await new Promise((resolve) => setTimeout(resolve, 200));
      return still;
    });
    assert.ok(before < size, `${before} bytes were handed over`);
    assert.ok((sockets[0]?.writableLength ?? 0) <= 128 * 1024);
  });
});
