import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import { Client, credentials, type ServiceError } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { eventually } from "../../test/support/wait.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { nextTurn } from "../base/slice.ts";
import { CallRefusal } from "./call-refusal.ts";
import type { DiscoveryStream } from "./discovery-stream.ts";
import { type AdsClient, openAdsClient } from "./grpc-client.ts";
import { createGrpcServer, type GrpcServer, type GrpcServerSettings, HEALTH_METHOD, SOTW_METHOD } from "./grpc-server.ts";
import { GRPC_STATUS } from "./grpc-status.ts";

const identity = (bytes: Buffer): Buffer => bytes;
const SECRET = "/test.Secrets/Tell";
const TALK = "/test.Secrets/Talk";

let server: GrpcServer;
let port: number;
let client: Client;
let streams: DiscoveryStream[];
let heard: string[];
let ends: number;
let rude: string[];

async function serve(settings: Partial<GrpcServerSettings> = {}, clock: Clock = systemClock): Promise<void> {
  streams = [];
  rude = [];
  heard = [];
  ends = 0;
  server = createGrpcServer({
    accept(stream) {
      streams.push(stream);
      return { message: (bytes) => void heard.push(Buffer.from(bytes).toString()), ended: () => (ends += 1) };
    },
    healthy: () => true,
    clock,
    settings,
    misbehaved: (how) => void rude.push(how),
    methods: {
      [SECRET]: (request, peer) => {
        if (request.length === 0) throw new Error("nothing was asked — really");
        return Buffer.from(`${Buffer.from(request).toString()} from ${peer.header("x-who")}`);
      },
    },
    dialogues: {
      [TALK]: async (request) => {
        const word = Buffer.from(request).toString();
        if (word === "leave") throw new CallRefusal(GRPC_STATUS.UNAUTHENTICATED, "not you");
        for (let turns = word.length; turns > 0; turns--) await nextTurn();
        return Buffer.from(`${word}!`);
      },
    },
  });
  port = await server.listen("127.0.0.1:0");
  client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
}

beforeEach(() => serve());

afterEach(async () => {
  client.close();
  await server.drain(100);
});

const ask = (path: string, request: string): Promise<Buffer | ServiceError> =>
  new Promise((resolve) => {
    client.makeUnaryRequest(path, identity, identity, Buffer.from(request), (error, answer) => resolve(error ?? answer ?? Buffer.alloc(0)));
  });

function open(): { readonly stream: AdsClient; readonly got: Buffer[]; readonly ended: Promise<(Error & { code?: number }) | undefined> } {
  const got: Buffer[] = [];
  const { promise: ended, resolve } = Promise.withResolvers<Error | undefined>();
  const stream = openAdsClient({
    address: `127.0.0.1:${port}`,
    variant: "delta",
    message: (bytes) => void got.push(bytes),
    ended: resolve,
  });
  return { stream, got, ended };
}

/** A message as it goes over the wire: not compressed, its length, its bytes. */
const framed = (text: string): Buffer => Buffer.concat([Buffer.from([0, 0, 0, 0, text.length]), Buffer.from(text)]);

const until = (what: () => boolean): Promise<unknown> => eventually(String(what), what);

describe("streams on which each message is answered", () => {
  function talk(...words: readonly string[]): Promise<readonly [number, readonly string[]]> {
    const stream = client.makeBidiStreamRequest(TALK, identity, identity);
    const got: string[] = [];
    const { promise, resolve } = Promise.withResolvers<readonly [number, readonly string[]]>();
    stream.on("data", (bytes: Buffer) => void got.push(bytes.toString()));
    stream.on("error", () => {});
    stream.on("status", ({ code }: { readonly code: number }) => resolve([code, got]));
    for (const word of words) stream.write(Buffer.from(word));
    stream.end();
    return promise;
  }

  it("are answered in order, whatever takes how long, and end when all is said", async () => {
    const words = ["a long word that takes many turns", "b", "another one", ""];
    assert.deepEqual(await talk(...words), [GRPC_STATUS.OK, words.map((word) => `${word}!`)]);
    assert.deepEqual(await talk(), [GRPC_STATUS.OK, []]);
  });

  it("are answered in order where questions come together", async () => {
    const session = http2.connect(`http://127.0.0.1:${port}`);
    const stream = session.request({ ":method": "POST", ":path": TALK, "content-type": "application/grpc" });
    stream.end(Buffer.concat(["a long word that takes many turns", "b"].map(framed)));
    const chunks: Buffer[] = [];
    for await (const chunk of stream as AsyncIterable<Buffer>) chunks.push(chunk);
    session.close();
    assert.deepEqual(Buffer.concat(chunks), Buffer.concat(["a long word that takes many turns!", "b!"].map(framed)));
  });

  it("end with the first refusal", async () => {
    assert.deepEqual(await talk("a", "leave", "b"), [GRPC_STATUS.UNAUTHENTICATED, ["a!"]]);
  });

  it("end when nothing is asked for long", async () => {
    client.close();
    await server.drain(100);
    const clock = manualClock();
    await serve({ keepaliveMs: 1_000_000 }, clock);
    const stream = client.makeBidiStreamRequest(TALK, identity, identity);
    const ended = new Promise<number>((resolve) => stream.on("status", ({ code }: { readonly code: number }) => resolve(code)));
    stream.on("error", () => {});
    const answered = once(stream, "data");
    stream.write(Buffer.from("a"));
    await answered;
    clock.advance(60_000);
    assert.equal(await ended, GRPC_STATUS.DEADLINE_EXCEEDED);
  });
});

describe("single calls", () => {
  it("health", async () => assert.deepEqual(await ask(HEALTH_METHOD, ""), Buffer.from([8, 1])));

  it("a method of our own, and one that throws", async () => {
    assert.equal(String(await ask(SECRET, "a word")), "a word from undefined");
    const error = (await ask(SECRET, "")) as ServiceError;
    assert.equal(error.code, GRPC_STATUS.INTERNAL);
    assert.equal(error.details, "nothing was asked — really");
  });

  it("are refused when they are larger than any that is known, or do not come to an end", async () => {
    assert.equal(((await ask(SECRET, "x".repeat(65_537))) as ServiceError).code, GRPC_STATUS.RESOURCE_EXHAUSTED);
    assert.deepEqual(rude, ["message"]);
    const clock = manualClock();
    await server.drain(0);
    client.close();
    await serve({ keepaliveMs: 0 }, clock);
    const session = http2.connect(`http://127.0.0.1:${port}`);
    const stream = session.request({ ":method": "POST", ":path": SECRET, "content-type": "application/grpc", te: "trailers" });
    stream.write(Buffer.of(0, 0, 0));
    let status: unknown;
    stream.once("response", (headers) => {
      status = headers["grpc-status"];
    });
    await until(() => {
      clock.advance(10_000);
      return status !== undefined;
    });
    assert.equal(status, String(GRPC_STATUS.DEADLINE_EXCEEDED));
    session.destroy();
  });

  it("are told what time it is here", async () => {
    const session = http2.connect(`http://127.0.0.1:${port}`);
    const stream = session.request({ ":method": "POST", ":path": HEALTH_METHOD, "content-type": "application/grpc" });
    const answered = once(stream, "response");
    stream.end(Buffer.alloc(5));
    const [{ date }] = (await answered) as [http2.IncomingHttpHeaders];
    assert.ok(Math.abs(Date.parse(date ?? "") - systemClock.now()) < 60_000, date);
    session.destroy();
  });

  it("a method that is not there", async () => {
    assert.equal(((await ask("/no.Such/Method", "")) as ServiceError).code, GRPC_STATUS.UNIMPLEMENTED);
  });
});

describe("discovery streams", () => {
  it("pass messages both ways, large ones whole, and say when they are gone", async () => {
    const { stream, got } = open();
    stream.send(Buffer.from("hello"));
    await until(() => heard.length === 1);
    const large = Buffer.alloc(5_000_000, "x");
    let flushed = 0;
    streams[0]?.send([large.subarray(0, 7), large.subarray(7)], () => (flushed += 1));
    streams[0]?.send([Buffer.from("small")], () => (flushed += 1));
    await until(() => got.length === 2 && flushed === 2);
    assert.deepEqual(got[0], large);
    assert.equal(String(got[1]), "small");
    assert.ok((streams[0]?.progress() ?? 0) >= large.length);
    stream.close();
    await until(() => ends === 1 && server.streams === 0);
  });

  it("end with a status after what was queued", async () => {
    const { stream, got, ended } = open();
    stream.send(Buffer.from("hello"));
    await until(() => heard.length === 1);
    streams[0]?.send([Buffer.alloc(1_000_000)], () => {});
    streams[0]?.close(GRPC_STATUS.PERMISSION_DENIED, "100 % not you");
    const error = await ended;
    assert.equal(error?.code, GRPC_STATUS.PERMISSION_DENIED);
    assert.match(error?.message ?? "", /100 % not you/);
    assert.equal(got[0]?.length, 1_000_000);
    assert.equal(ends, 1);
  });

  it("lose their connection when they are aborted", async () => {
    const { stream, ended } = open();
    stream.send(Buffer.from("hello"));
    await until(() => heard.length === 1);
    streams[0]?.abort();
    assert.equal((await ended)?.code, GRPC_STATUS.UNAVAILABLE);
    await until(() => ends === 1);
  });

  it("are told to go elsewhere when their connection is old", async () => {
    await server.drain(0);
    client.close();
    await serve({ maxConnectionAgeMs: 50 });
    const session = http2.connect(`http://127.0.0.1:${port}`);
    await new Promise((resolve) => session.once("goaway", resolve));
    session.destroy();
  });

  it("leave a connection that is let go when it has none for a while; one that never had any is cut", async () => {
    await server.drain(0);
    client.close();
    // So long that a busy machine has read the first call by then.
    await serve({ keepaliveMs: 2_000, keepaliveTimeoutMs: 60_000 });
    const quiet = http2.connect(`http://127.0.0.1:${port}`);
    quiet.on("error", () => {});
    const used = http2.connect(`http://127.0.0.1:${port}`);
    used.request({ ":method": "POST", ":path": HEALTH_METHOD, "content-type": "application/grpc" }).end(Buffer.alloc(5)).resume();
    await Promise.all([
      new Promise((resolve) => quiet.once("close", resolve)),
      new Promise((resolve) => used.once("goaway", (code) => resolve(assert.equal(code, http2.constants.NGHTTP2_NO_ERROR)))),
    ]);
    assert.deepEqual(rude, ["silent"]);
    used.destroy();
  });

  it("leave alone whoever says something, and ask the silent whether they are there", async () => {
    await server.drain(0);
    client.close();
    const clock = manualClock();
    await serve({ keepaliveMs: 30_000, keepaliveTimeoutMs: 10_000 }, clock);
    const session = http2.connect(`http://127.0.0.1:${port}`);
    session.request({ ":method": "POST", ":path": SOTW_METHOD, "content-type": "application/grpc" }).on("error", () => {});
    await until(() => streams.length === 1);
    let asked = 0;
    session.on("ping", () => (asked += 1));
    // What the server said before comes before its answer.
    const speak = (): Promise<void> => new Promise((resolve) => void session.ping(() => resolve()));
    for (let look = 0; look < 4; look += 1) {
      await speak();
      clock.advance(30_000);
    }
    await speak();
    assert.equal(asked, 0);
    clock.advance(30_000);
    clock.advance(30_000);
    await until(() => asked === 1);
    session.destroy();
  });

  it("are not waited for when all that is left is a client that reads nothing", async () => {
    const silent = net.connect(port, "127.0.0.1");
    await once(silent, "connect");
    assert.equal(String(await ask(SECRET, "a word")), "a word from undefined"); // By then the server knows of the other one too.
    await server.drain(50);
    silent.destroy();
  });

  it("go with their connection when nobody answers on it", async () => {
    await server.drain(0);
    client.close();
    await serve({ keepaliveMs: 20, keepaliveTimeoutMs: 50 });
    const socket = net.connect(port, "127.0.0.1");
    socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    socket.resume();
    await new Promise((resolve) => socket.once("close", resolve));
  });
});
