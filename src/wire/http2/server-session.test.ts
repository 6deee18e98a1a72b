import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import net, { type AddressInfo } from "node:net";
import fc from "fast-check";
import { afterEach, beforeEach, describe, it } from "vitest";
import { holds } from "../../../test/support/holds.ts";
import { eventually } from "../../../test/support/wait.ts";
import { systemClock } from "../../base/clock.ts";
import {
  FLAG,
  FRAME,
  frameOf,
  HTTP2_ERROR,
  headerFrames,
  pingFrame,
  resetFrame,
  SETTING,
  settingsFrame,
  windowUpdateFrame,
} from "./frame.ts";
import { headerBlock } from "./hpack.ts";
import { ServerSession } from "./server-session.ts";
import type { ServerStream } from "./server-stream.ts";

const OK = headerBlock([[":status", "200"]]);
const END = headerBlock([["x-end", "yes"]]);
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const REQUEST = headerBlock([
  [":method", "POST"],
  [":scheme", "http"],
  [":path", "/"],
]);

let server: net.Server;
let port: number;
let sessions: ServerSession[];
let streams: ServerStream[];
/** Of this test: connections of the one before may still be going. */
let seen: { gone: number; writes: number; readonly faults: string[] };
let opened: (stream: ServerStream) => void;
let sockets: net.Socket[];

beforeEach(async () => {
  [sessions, streams, sockets] = [[], [], []];
  const mine: typeof seen = { gone: 0, writes: 0, faults: [] };
  seen = mine;
  opened = echo;
  server = net.createServer((socket) => {
    const write = socket._write.bind(socket);
    socket._write = (...written) => {
      mine.writes += 1;
      write(...written);
    };
    const session = new ServerSession(socket, {
      maxStreams: 100,
      clock: systemClock,
      pace: undefined,
      opened(stream) {
        streams.push(stream);
        opened(stream);
      },
      failed: (fault) => void mine.faults.push(fault.message),
      closed: () => (mine.gone += 1),
    });
    sessions.push(session);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  port = (server.address() as AddressInfo).port;
});

afterEach(() => {
  server.close();
  for (const socket of sockets) socket.destroy();
});

/** Sends back what comes, when all of it is there. */
function echo(stream: ServerStream): void {
  const content: Buffer[] = [];
  stream.listen({
    content: (bytes) => void content.push(bytes),
    finished() {
      stream.respond(OK);
      stream.write(content, () => {});
      stream.end(END, () => {});
    },
    closed() {},
  });
}

/** Somebody else's client. */
function connect(settings: http2.Settings = {}): http2.ClientHttp2Session {
  const session = http2.connect(`http://127.0.0.1:${port}`, { settings });
  session.on("error", () => {});
  return session;
}

async function ask(session: http2.ClientHttp2Session, body: Buffer, headers: http2.OutgoingHttpHeaders = {}): Promise<Buffer> {
  const request = session.request({ ":method": "POST", ...headers });
  request.end(body);
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** A client that says what it likes. */
async function rude(...said: readonly Buffer[]): Promise<net.Socket> {
  const socket = net.connect(port, "127.0.0.1");
  sockets.push(socket);
  socket.on("error", () => {});
  await once(socket, "connect");
  socket.write(Buffer.concat([PREFACE, settingsFrame([]), ...said]));
  return socket;
}

const closed = (socket: net.Socket): Promise<unknown> => {
  socket.resume();
  return once(socket, "close");
};

describe("requests", () => {
  it("come back whole, large and small, many at once, whatever window the client opens", async () => {
    for (const initialWindowSize of [1, 100, 65_535, 8_000_000]) {
      const session = connect({ initialWindowSize });
      const sizes = initialWindowSize === 1 ? [0, 1, 50] : [0, 1, 16_383, 16_384, 16_385, 70_000, 1_000_000];
      const bodies = sizes.map((size) => Buffer.from(Array.from({ length: size }, (_, index) => index % 251)));
      assert.deepEqual(await Promise.all(bodies.map((body) => ask(session, body))), bodies);
      session.close();
    }
  });

  it("have their headers, which are packed and referred to again by the next", async () => {
    const session = connect();
    const header = fc.tuple(fc.stringMatching(/^x-[a-z0-9-]{1,30}$/), fc.stringMatching(/^[!-~]([ -~]{0,60}[!-~])?$/));
    await holds(
      fc.asyncProperty(fc.uniqueArray(header, { maxLength: 10, selector: ([name]) => name }), async (headers) => {
        await ask(session, Buffer.alloc(1), Object.fromEntries(headers));
        const head = streams.at(-1)?.head;
        for (const [name, value] of headers) assert.equal(head?.get(name), value);
      }),
    );
    session.close();
  });

  it("are not read while nobody wants to: the client stops when it has sent what it may", async () => {
    let stream: ServerStream | undefined;
    let read = 0;
    opened = (one) => {
      stream = one;
      one.pause();
      one.listen({ content: (bytes) => (read += bytes.length), finished: () => one.end(OK, () => {}), closed() {} });
    };
    const session = connect();
    const request = session.request({ ":method": "POST" });
    request.end(Buffer.alloc(1_000_000));
    await eventually("the client waits", () => session.state.remoteWindowSize === 0);
    assert.equal(read, 0);
    stream?.resume();
    await once(request.resume(), "end");
    assert.equal(read, 1_000_000);
    session.close();
  });

  it("that are given up are told so, and leave room for others on the connection", async () => {
    const session = connect();
    opened = (stream) => stream.pause();
    for (let turn = 0; turn < 10; turn++) {
      const request = session.request({ ":method": "POST" });
      request.on("error", () => {});
      request.write(Buffer.alloc(60_000));
      await eventually("opened", () => streams.length === turn + 1);
      streams.at(-1)?.reset(HTTP2_ERROR.CANCEL);
      await once(request, "close");
      assert.equal(request.rstCode, HTTP2_ERROR.CANCEL);
    }
    opened = echo;
    assert.equal((await ask(session, Buffer.alloc(200_000))).length, 200_000);
    session.close();
  });

  it("take turns: a large answer does not keep a small one waiting", async () => {
    opened = (stream) => {
      stream.listen({ content() {}, finished() {}, closed() {} });
      stream.respond(OK);
      stream.write([Buffer.alloc(stream.head.get("x-size") === "large" ? 50_000_000 : 1)], () => {});
    };
    const session = connect({ initialWindowSize: 2 ** 30 });
    await once(session, "connect");
    session.setLocalWindowSize(2 ** 30);
    let bytes = 0;
    const large = session.request({ ":method": "POST", "x-size": "large" });
    large.on("error", () => {});
    large.on("data", (chunk: Buffer) => (bytes += chunk.length));
    await eventually("it comes", () => bytes > 0);
    const small = session.request({ ":method": "POST" });
    small.on("error", () => {});
    await once(small, "data");
    assert.ok(bytes < 50_000_000);
    session.destroy();
    await eventually("gone", () => seen.gone === 1);
  });

  it("say that an answer without content has gone, too", async () => {
    const flushed: string[] = [];
    opened = (stream) => {
      stream.listen({ content() {}, finished() {}, closed() {} });
      stream.respond(OK);
      stream.write([Buffer.from("a")], () => void flushed.push("some"));
      setTimeout(() => stream.write([], () => void flushed.push("none")), 20);
    };
    const session = connect();
    session.request({ ":method": "POST" }).on("error", () => {});
    await eventually("both have gone", () => flushed.length === 2);
    assert.deepEqual(flushed, ["some", "none"]);
    session.destroy();
  });

  it("are answered in one write, where all is said together", async () => {
    opened = (stream) => {
      const say = (): void => {
        stream.respond(OK);
        stream.write([Buffer.from("hello")], () => {});
        stream.end(END, () => {});
      };
      stream.listen({ content() {}, finished: () => setImmediate(() => stream.together(say)), closed() {} });
    };
    const session = connect();
    await ask(session, Buffer.alloc(1));
    const before = seen.writes;
    assert.equal(String(await ask(session, Buffer.alloc(1))), "hello");
    assert.equal(seen.writes - before, 1);
    session.destroy();
  });

  it("say when the network has taken an answer, and how much it has taken in all", async () => {
    let flushed = 0;
    opened = (stream) => {
      stream.listen({ content() {}, finished() {}, closed() {} });
      stream.respond(OK);
      stream.write([Buffer.alloc(40_000_000)], () => (flushed += 1));
    };
    const session = connect();
    const request = session.request({ ":method": "POST" });
    request.on("error", () => {});
    await once(request, "response");
    assert.equal(flushed, 0);
    const before = sessions[0]?.written ?? 0;
    request.resume();
    await eventually("flushed", () => flushed === 1);
    assert.ok((sessions[0]?.written ?? 0) >= before + 30_000_000);
    session.destroy();
  });
});

describe("a session that is left", () => {
  it("takes no further streams, and ends with the last that is open", async () => {
    opened = (stream) => stream.listen({ content() {}, finished: () => stream.end(OK, () => {}), closed() {} });
    const session = connect();
    const request = session.request({ ":method": "POST" });
    await eventually("opened", () => streams.length === 1);
    const away = once(session, "goaway");
    sessions[0]?.leave();
    await away;
    assert.equal(seen.gone, 0);
    request.end();
    await once(request.resume(), "end");
    await eventually("gone", () => seen.gone === 1);
  });
});

describe("a client that breaks the rules is told and cut", () => {
  const flood = (frame: Buffer): Buffer => Buffer.concat(Array<Buffer>(3_000).fill(frame));
  const opening = (count: number, then: (id: number) => Buffer): Buffer =>
    Buffer.concat(
      Array.from({ length: count }, (_, index) => Buffer.concat([headerFrames(2 * index + 1, REQUEST, false), then(2 * index + 1)])),
    );
  const cases: readonly [what: string, said: () => Buffer, fault: RegExp][] = [
    ["by opening and resetting streams without end", () => opening(3_000, (id) => resetFrame(id, HTTP2_ERROR.CANCEL)), /flood/],
    ["by settings without end", () => flood(settingsFrame([])), /flood/],
    ["by priorities without end", () => flood(frameOf({ type: FRAME.PRIORITY, flags: 0, stream: 1 }, Buffer.alloc(5))), /flood/],
    ["by frames that nobody knows", () => flood(frameOf({ type: 99, flags: 0, stream: 0 }, Buffer.alloc(0))), /flood/],
    [
      "by content without content",
      () => Buffer.concat([opening(1, () => Buffer.alloc(0)), flood(frameOf({ type: FRAME.DATA, flags: 0, stream: 1 }, Buffer.alloc(0)))]),
      /flood/,
    ],
    ["by opening windows byte by byte", () => flood(windowUpdateFrame(0, 1)), /flood/],
    ["by more streams than are taken, again and again", () => opening(3_000, () => Buffer.alloc(0)), /flood/],
    [
      "by more content than it may send",
      () =>
        Buffer.concat([
          opening(1, () => Buffer.alloc(0)),
          ...Array<Buffer>(5).fill(frameOf({ type: FRAME.DATA, flags: 0, stream: 1 }, Buffer.alloc(16_384))),
        ]),
      /more than may be sent/,
    ],
    [
      "by a window without bounds",
      () => Buffer.concat([windowUpdateFrame(0, 2 ** 31 - 1), windowUpdateFrame(0, 2 ** 31 - 1)]),
      /without bounds/,
    ],
    ["by impossible settings", () => settingsFrame([[SETTING.MAX_FRAME_SIZE, 1]]), /impossible/],
  ];
  for (const [what, said, fault] of cases) {
    it(what, async () => {
      opened = (stream) => stream.pause();
      await closed(await rude(said()));
      await eventually("gone", () => seen.gone === 1);
      assert.equal(seen.faults.length, 1);
      assert.match(seen.faults[0] ?? "", fault);
    });
  }

  it("by asking without reading", async () => {
    const socket = await rude();
    socket.pause();
    const pings = Buffer.concat(Array<Buffer>(10_000).fill(pingFrame(0, Buffer.alloc(8))));
    await eventually("it is too much", () => {
      if (socket.writableLength < 1_000_000) socket.write(pings);
      return seen.faults.length === 1 && seen.gone === 1;
    });
    assert.match(seen.faults[0] ?? "", /does not read/);
  });

  it("and nothing it can send brings down the process, or leaves a stream behind", async () => {
    const id = fc.constantFrom(0, 1, 2, 3, 5);
    const frame = fc.oneof(
      id.map((stream) => headerFrames(stream, REQUEST, false)),
      id.map((stream) => headerFrames(stream, REQUEST, true)),
      fc
        .tuple(id, fc.nat(200))
        .map(([stream, size]) => frameOf({ type: FRAME.DATA, flags: size % 3 === 0 ? FLAG.END_STREAM : 0, stream }, Buffer.alloc(size))),
      fc
        .tuple(fc.nat(11), fc.nat(255), id, fc.uint8Array({ maxLength: 40 }))
        .map(([type, flags, stream, bytes]) => frameOf({ type, flags, stream }, bytes)),
    );
    await holds(
      fc.asyncProperty(fc.array(frame, { maxLength: 15 }), async (frames) => {
        const before = seen.gone;
        const socket = await rude(...frames);
        socket.end();
        await closed(socket);
        await eventually("gone", () => seen.gone === before + 1);
        assert.equal(sessions.at(-1)?.streams, 0);
      }),
      { numRuns: 200 },
    );
  });
});
