import { readFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { CREATE_CERTIFICATE } from "../../src/ca/certificate-service.ts";
import { DELTA_METHOD } from "../../src/wire/grpc-server.ts";
import { CLUSTER_TYPE } from "../../src/wire/type-urls.ts";
import { holds } from "../support/holds.ts";
import {
  continuationFrame,
  FRAME,
  FRAME_HEAD,
  headerBlock,
  headersFrame,
  http2Frame,
  PREFACE,
  resetFrame,
  settingsFrame,
} from "../support/http2-frames.ts";
import { clientCredentials, SERVER_NAME } from "../support/identity.ts";
import type { Istiod } from "../support/istiod.ts";
import { startSecureIstiod, tokenFor } from "../support/secure-proxy.ts";
import { eventually } from "../support/wait.ts";
import { subscribe } from "../support/xds-subscriber.ts";

/*
 * Strangers who mean harm on the secure port of a real control plane. In each test a proxy that behaves is connected all the time, and changes made
 * during and after the attack must reach it.
 */

/** The largest resident set that is tolerated after an attack, in MB: a process that does nothing has about 120. */
const MOST_MEMORY_MB = 350;

const rssMb = (pid: number): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;

/** Connects a proxy that behaves; the function given makes a change and resolves when it has come. */
async function friendOf(istiod: Istiod): Promise<() => Promise<void>> {
  const answers = subscribe({
    port: istiod.securePort,
    variant: "delta",
    node: { id: "sidecar~10.9.9.9~friend.shop~shop.svc.cluster.local" },
    typeUrl: CLUSTER_TYPE,
    secure: { credentials: await clientCredentials(istiod), token: tokenFor("shop", "friend") },
  });
  let change = 0;
  const served = async (): Promise<void> => {
    change += 1;
    const host = `change-${change}.example.com`;
    await istiod.write("conf/change.yaml", serviceEntry(host));
    await eventually(`change ${change} comes`, () =>
      answers.some(({ resources }) => resources.some(({ value }) => Buffer.from(value).includes(host))),
    );
  };
  await served();
  return served;
}

const serviceEntry = (host: string): string => `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: change, namespace: shop}
spec: {hosts: [${host}], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS}
`;

/** What is left of a connection when the test is over is closed. */
function held<S extends Socket>(socket: S): S {
  socket.on("error", () => {}).resume();
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** A connection on which the handshake is done; what comes next is the test's. */
const encrypted = (istiod: Istiod): Socket =>
  held(
    connectTls({
      port: istiod.securePort,
      host: "127.0.0.1",
      servername: SERVER_NAME,
      rejectUnauthorized: false,
      ALPNProtocols: ["h2"],
    }),
  );

const plain = (istiod: Istiod): Socket => held(connect(istiod.securePort, "127.0.0.1"));

/** Both ports speak HTTP/2, and both are to stand what is done to it. */
const DOORS: readonly ((istiod: Istiod) => Socket)[] = [encrypted, (istiod) => held(connect(istiod.grpcPort, "127.0.0.1"))];

const refused = (istiod: Istiod, reason: string): Promise<number> =>
  istiod.metric("istiod_refused_callers", `service="connection",reason="${reason}"`);

const callHeaders = (path: string, more: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> => ({
  ":method": "POST",
  ":scheme": "https",
  ":path": path,
  ":authority": SERVER_NAME,
  "content-type": "application/grpc",
  te: "trailers",
  ...more,
});

/** How a ClientHello begins: what follows is looked at by more of the code than noise is. */
const HELLO = Buffer.from("16030102000100 01fc0303".replaceAll(" ", ""), "hex");

describe("strangers on the secure port", () => {
  it("who hold thousands of handshakes half open, or send noise, cost nobody anything and are counted", async () => {
    const istiod = await startSecureIstiod();
    const served = await friendOf(istiod);
    const sockets = Array.from({ length: 2_000 }, (_, index) => {
      const socket = plain(istiod);
      if (index % 4 === 0) socket.write(Buffer.alloc(2_000, index));
      if (index % 4 === 1) socket.write(HELLO);
      if (index % 4 === 2) socket.write("GET / HTTP/1.1\r\n\r\n");
      return socket;
    });
    await served();
    await eventually("they are cut", () => sockets.every(({ closed }) => closed), 120_000);
    await served();
    await eventually(
      "they are counted",
      async () => (await refused(istiod, "tls handshake")) >= 1_000 && (await refused(istiod, "handshake timeout")) > 0,
    );
    expect(rssMb(istiod.pid())).toBeLessThan(MOST_MEMORY_MB);
  });

  it("who begin with any bytes at all are turned away", async () => {
    const istiod = await startSecureIstiod();
    const served = await friendOf(istiod);
    const begun = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 600 }),
      fc.uint8Array({ maxLength: 600 }).map((rest) => Buffer.concat([HELLO, rest])),
      fc.tuple(fc.nat(255), fc.nat(0xffff), fc.uint8Array({ maxLength: 300 })).map(([type, length, rest]) => {
        const head = Buffer.of(type, 3, 3, 0, 0);
        head.writeUInt16BE(length, 3);
        return Buffer.concat([head, rest]);
      }),
    );
    await holds(
      fc.asyncProperty(fc.array(begun, { minLength: 20, maxLength: 20 }), async (texts) => {
        const sockets = texts.map((bytes) => {
          const socket = plain(istiod);
          socket.end(bytes);
          return socket;
        });
        await eventually("they are closed", () => sockets.every(({ closed }) => closed));
      }),
      { numRuns: 25 },
    );
    await served();
  });

  it("who flood either port with resets or headers without end lose their connection", async () => {
    const istiod = await startSecureIstiod();
    const served = await friendOf(istiod);
    const open = headerBlock(callHeaders(DELTA_METHOD));
    const floods: readonly ((socket: Socket) => void)[] = [
      (socket) => {
        for (let stream = 1; stream < 20_000; stream += 2) socket.write(Buffer.concat([headersFrame(stream, open), resetFrame(stream)]));
      },
      (socket) => {
        socket.write(headersFrame(1, open, false));
        for (let turn = 0; turn < 2_000; turn += 1) socket.write(continuationFrame(1, headerBlock({ [`x-${turn}`]: "y".repeat(8_000) })));
      },
    ];
    for (const [flood, door] of floods.flatMap((one) => DOORS.map((open) => [one, open] as const))) {
      const socket = door(istiod);
      socket.write(Buffer.concat([PREFACE, settingsFrame()]));
      flood(socket);
      await served();
      await eventually("the connection is cut", () => socket.closed);
    }
    await eventually("each is counted", async () => (await refused(istiod, "http2")) === floods.length * DOORS.length);
    expect(rssMb(istiod.pid())).toBeLessThan(MOST_MEMORY_MB);
  });

  it("who cut what they say into single bytes cost about as much memory as they say", async () => {
    const istiod = await startSecureIstiod();
    const served = await friendOf(istiod);
    const socket = encrypted(istiod);
    const streams = Array.from({ length: 100 }, (_, index) => 1 + 2 * index);
    const announced = Buffer.alloc(5);
    announced.writeUInt32BE(60_000, 1);
    const begin = streams.flatMap((stream) => [
      headersFrame(stream, headerBlock(callHeaders(CREATE_CERTIFICATE))),
      http2Frame({ type: FRAME.data, stream }, announced),
    ]);
    const room = roomOn(socket);
    socket.write(Buffer.concat([PREFACE, settingsFrame(), ...begin]));
    await room(streams.length * announced.length);
    for (let said = 0; said < 50_000 && !socket.destroyed; said += 500) {
      for (const stream of streams) {
        await room(500);
        socket.write(Buffer.concat(Array<Buffer>(500).fill(http2Frame({ type: FRAME.data, stream }, Buffer.of(1)))));
      }
    }
    expect(socket.destroyed).toBe(false);
    expect(rssMb(istiod.pid())).toBeLessThan(MOST_MEMORY_MB);
    await served();
  });

  it("who connect and say nothing, or next to nothing, are let go", async () => {
    const istiod = await startSecureIstiod({ env: { GRPC_KEEPALIVE_INTERVAL: "1s", GRPC_KEEPALIVE_TIMEOUT: "6s" } });
    const served = await friendOf(istiod);
    const begin = Buffer.concat([PREFACE, settingsFrame()]);
    const halfHeaders = Buffer.concat([begin, headersFrame(1, headerBlock({ ":method": "POST" }), false)]);
    const ways = [Buffer.alloc(0), PREFACE.subarray(0, 10), begin, halfHeaders];
    const sockets = Array.from({ length: 200 }, (_, index) => {
      const socket = DOORS[Math.floor(index / ways.length) % DOORS.length]?.(istiod) ?? plain(istiod);
      const said = ways[index % ways.length];
      if (said !== undefined && said.length > 0) socket.write(said);
      return socket;
    });
    await served();
    await eventually("they are cut", () => sockets.every(({ closed }) => closed));
    await served();
    await eventually("they are counted", async () => (await refused(istiod, "silent")) > 0);
  });

  it("who send headers or messages that are too large are refused before anything is kept", async () => {
    const istiod = await startSecureIstiod();
    const served = await friendOf(istiod);
    const large = encrypted(istiod);
    const block = headerBlock(callHeaders(DELTA_METHOD, { authorization: `Bearer ${"x".repeat(120_000)}` }));
    large.write(Buffer.concat([PREFACE, settingsFrame(), headersFrame(1, block.subarray(0, 16_000), false)]));
    for (let at = 16_000; at < block.length; at += 16_000)
      large.write(continuationFrame(1, block.subarray(at, at + 16_000), at + 16_000 >= block.length));
    expect(await answerTo(istiod, { path: CREATE_CERTIFICATE, declared: 1_000_000 })).toBe("8");
    expect(await answerTo(istiod, { path: "/grpc.health.v1.Health/Check", declared: 1_000_000 })).toBe("8");
    await eventually("both are counted", async () => (await refused(istiod, "message")) === 2);
    await served();
  });
});

/** Resolves each time when so many bytes of content more may be sent on the connection, or when it is closed. */
function roomOn(socket: Socket): (bytes: number) => Promise<void> {
  let [left, rest] = [65_535, Buffer.alloc(0)];
  let granted = Promise.withResolvers<void>();
  socket.on("data", (chunk: Buffer) => {
    let bytes = Buffer.concat([rest, chunk]);
    for (let end = frameEnd(bytes); end <= bytes.length; end = frameEnd(bytes)) {
      if (bytes[3] === FRAME.windowUpdate && bytes.readUInt32BE(5) === 0) left += bytes.readUInt32BE(FRAME_HEAD);
      bytes = bytes.subarray(end);
    }
    rest = bytes;
    granted.resolve();
  });
  socket.once("close", () => granted.resolve());
  return async (bytes) => {
    while (left < bytes && !socket.destroyed) {
      await granted.promise;
      granted = Promise.withResolvers<void>();
    }
    left -= bytes;
  };
}

const frameEnd = (bytes: Buffer): number => (bytes.length < FRAME_HEAD ? Number.POSITIVE_INFINITY : FRAME_HEAD + bytes.readUIntBE(0, 3));

/** Calls a method with a message that says it has so many bytes; gives the gRPC status of the answer. */
function answerTo(istiod: Istiod, call: { readonly path: string; readonly declared: number }): Promise<string> {
  return new Promise((resolve, reject) => {
    const session = connectHttp2(`https://127.0.0.1:${istiod.securePort}`, { rejectUnauthorized: false, servername: SERVER_NAME });
    onTestFinished(() => session.destroy());
    session.on("error", reject);
    const stream = session.request({ ":method": "POST", ":path": call.path, "content-type": "application/grpc", te: "trailers" });
    stream.on("error", reject);
    stream.on("response", (headers) => resolve(String(headers["grpc-status"])));
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(call.declared, 1);
    stream.write(prefix);
  });
}
