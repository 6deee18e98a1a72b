import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import http2 from "node:http2";
import net from "node:net";
import { create, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, it } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import { DeltaDiscoveryRequestSchema } from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { encodedBytes } from "../../src/wire/encode.ts";
import { type AdsClient, openAdsClient } from "../../src/wire/grpc-client.ts";
import { createGrpcServer, DELTA_METHOD, type GrpcServer, type GrpcServerSettings } from "../../src/wire/grpc-server.ts";
import { GRPC_STATUS } from "../../src/wire/grpc-status.ts";
import { CLUSTER_TYPE, LISTENER_TYPE } from "../../src/wire/type-urls.ts";
import { createXdsServer, type XdsServer } from "../../src/xds/server.ts";
import type { XdsSettings } from "../../src/xds/settings.ts";
import { eventually } from "../support/wait.ts";
import { envoyProviders, ModelClient, type ModelClientOptions, testView } from "../support/xds-model.ts";

/*
 * Clients that mean harm, on real sockets. Each test ends with a well-behaved proxy that is still served.
 */

const NODE = { id: "sidecar~10.0.0.1~a.default~default.svc.cluster.local" };
const MB = 1024 * 1024;

let table: ReturnType<typeof envoyProviders>;
let xds: XdsServer;
let grpc: GrpcServer;
let port: number;
const opened: { close(): void }[] = [];

async function serve(settings: Partial<XdsSettings> = {}, transport: Partial<GrpcServerSettings> = {}): Promise<void> {
  table = envoyProviders();
  for (let index = 0; index < 10; index += 1) table.clusters.set(`cluster-${index}`, "1");
  xds = createXdsServer({ providers: table.all, viewOf: (node) => testView(node.id), clock: systemClock, log: silentLog, settings });
  grpc = createGrpcServer({ accept: xds.accept, healthy: () => true, clock: systemClock, settings: transport });
  port = await grpc.listen("127.0.0.1:0");
}

beforeEach(() => serve());

afterEach(async () => {
  for (const one of opened.splice(0)) one.close();
  xds.drain();
  await grpc.drain(200);
});

interface Live {
  readonly client: ModelClient;
  readonly stream: AdsClient;
  readonly ended: Promise<(Error & { code?: number }) | undefined>;
}

function proxy(options: Partial<ModelClientOptions> = {}): Live {
  let live: Live | undefined;
  let end: (error: Error | undefined) => void = () => {};
  const ended = new Promise<Error | undefined>((resolve) => {
    end = resolve;
  });
  const stream = openAdsClient({
    address: `127.0.0.1:${port}`,
    variant: "delta",
    message: (bytes) => live?.client.message(bytes),
    ended: end,
  });
  opened.push(stream);
  live = { client: new ModelClient({ variant: "delta", ...options, send: (request) => stream.send(request) }), stream, ended };
  return live;
}

const until = (what: () => boolean, ms?: number): Promise<unknown> => eventually(String(what), what, ms);

/** The proof that the server is well: a new proxy gets everything. */
async function othersAreServed(ms?: number): Promise<void> {
  const friend = proxy({ node: "sidecar~10.0.0.9~friend.default~default.svc.cluster.local" });
  friend.client.subscribe(CLUSTER_TYPE);
  await until(() => friend.client.held(CLUSTER_TYPE).size >= 10, ms);
  table.clusters.set("cluster-0", String(Math.random()));
  const sent = friend.client.seen.length;
  xds.push("test");
  await until(() => friend.client.seen.length > sent, ms);
  friend.stream.close();
}

const request = (given: Parameters<typeof create<typeof DeltaDiscoveryRequestSchema>>[1]): Uint8Array =>
  toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, given));

describe("bytes that are no protocol", () => {
  it("noise instead of HTTP/2", async () => {
    for (let turn = 0; turn < 20; turn += 1) {
      const socket = net.connect(port, "127.0.0.1");
      socket.on("error", () => {});
      if (turn % 2 === 1) socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
      await new Promise((resolve) => socket.write(randomBytes(4_096), resolve));
      socket.destroy();
    }
    await othersAreServed();
  });

  it("noise instead of a request", async () => {
    for (let turn = 0; turn < 20; turn += 1) {
      const { stream, ended } = proxy();
      stream.send(Buffer.concat([Buffer.from([0x0a, 0xff, 0xff, 0x7f]), randomBytes(50)]));
      assert.equal((await ended)?.code, GRPC_STATUS.INVALID_ARGUMENT);
    }
    await othersAreServed();
  });

  it("a request without a node", async () => {
    const { stream, ended } = proxy();
    stream.send(request({ typeUrl: CLUSTER_TYPE }));
    assert.equal((await ended)?.code, GRPC_STATUS.INVALID_ARGUMENT);
  });

  it("a node that is too large, or nested without end", async () => {
    const large = proxy();
    large.stream.send(request({ typeUrl: CLUSTER_TYPE, node: { ...NODE, metadata: { x: "y".repeat(300_000) } } }));
    assert.equal((await large.ended)?.code, GRPC_STATUS.INVALID_ARGUMENT);
    let metadata: JsonObject = {};
    for (let depth = 0; depth < 1_000; depth += 1) metadata = { a: metadata };
    const deep = proxy();
    deep.stream.send(request({ typeUrl: CLUSTER_TYPE, node: create(NodeSchema, { ...NODE, metadata }) }));
    assert.equal((await deep.ended)?.code, GRPC_STATUS.INVALID_ARGUMENT);
    await othersAreServed();
  });

  it("a message over the limit, and more names than anyone has", async () => {
    const large = proxy();
    large.stream.send(request({ typeUrl: CLUSTER_TYPE, node: NODE, resourceNamesSubscribe: ["x".repeat(5 * MB)] }));
    assert.equal((await large.ended)?.code, GRPC_STATUS.RESOURCE_EXHAUSTED);
    const many = proxy();
    many.stream.send(
      request({ typeUrl: CLUSTER_TYPE, node: NODE, resourceNamesSubscribe: Array.from({ length: 100_001 }, (_, index) => `n${index}`) }),
    );
    assert.equal((await many.ended)?.code, GRPC_STATUS.RESOURCE_EXHAUSTED);
    await othersAreServed();
  });
});

describe("too many streams", () => {
  /** Opens streams without ever saying anything, as a tool for that would. */
  function flood(streams: number): { readonly session: http2.ClientHttp2Session; refused: number } {
    const session = http2.connect(`http://127.0.0.1:${port}`);
    const count = { session, refused: 0 };
    session.on("error", () => {});
    for (let index = 0; index < streams; index += 1) {
      const stream = session.request({ ":method": "POST", ":path": DELTA_METHOD, "content-type": "application/grpc", te: "trailers" });
      stream.on("error", () => {
        count.refused += 1;
      });
      stream.on("response", (headers) => {
        if (headers["grpc-status"] === String(GRPC_STATUS.RESOURCE_EXHAUSTED)) count.refused += 1;
        stream.close();
      });
    }
    opened.push({ close: () => session.destroy() });
    return count;
  }

  it("10,000 on one connection: no more than a hundred are open at a time", async () => {
    const before = process.memoryUsage().rss;
    const { session } = flood(10_000);
    await until(() => grpc.streams >= 100);
    // Whatever was sent before it has been seen when it is answered.
    await new Promise<void>((resolve) => session.ping(() => resolve()));
    assert.equal(grpc.streams, 100);
    await othersAreServed();
    assert.ok(process.memoryUsage().rss - before < 300 * MB, "client and server together");
  });

  it("10,000 on a hundred connections: those beyond the limit are refused, and go away when they keep silent", async () => {
    await grpc.drain(0);
    await serve({ firstRequestMs: 20_000 }, { maxStreams: 1_000 });
    const friend = proxy();
    friend.client.subscribe(CLUSTER_TYPE);
    await until(() => friend.client.held(CLUSTER_TYPE).size === 10);
    const floods = Array.from({ length: 100 }, () => flood(100));
    await until(() => floods.reduce((sum, one) => sum + one.refused, 0) >= 9_001, 60_000);
    assert.ok(grpc.streams <= 1_000);
    table.clusters.set("cluster-0", "2");
    const sent = friend.client.seen.length;
    xds.push("test");
    await until(() => friend.client.seen.length > sent);
    await until(() => grpc.streams === 1);
    await othersAreServed();
  });
});

describe("proxies that do not do their part", () => {
  /** A proxy that asks and then lets the answer stand in the wire: the flow-control window closes after 64 KB. */
  function mute(index: number, cut: () => void): void {
    const session = http2.connect(`http://127.0.0.1:${port}`);
    session.on("error", () => {});
    session.on("close", cut);
    opened.push({ close: () => session.destroy() });
    const stream = session.request({ ":method": "POST", ":path": DELTA_METHOD, "content-type": "application/grpc", te: "trailers" });
    stream.on("error", () => {});
    const body = request({ typeUrl: CLUSTER_TYPE, node: { id: `sidecar~10.0.1.${index}~mute.default~x` } });
    const head = Buffer.alloc(5);
    head.writeUInt32BE(body.length, 1);
    stream.write(Buffer.concat([head, body]));
  }

  it("never reads: unsent bytes stay within the budget, and it is cut when others need the room", async () => {
    await grpc.drain(0);
    await serve({ unsentBytes: 8 * MB, windowBytes: 4 * MB, stallMs: 5_000 });
    for (let index = 0; index < 10; index += 1) table.clusters.put(encodedBytes(CLUSTER_TYPE, `cluster-${index}`, randomBytes(MB / 10)));
    const known = proxy();
    known.client.subscribe(CLUSTER_TYPE);
    await until(() => known.client.held(CLUSTER_TYPE).size === 10);
    let cut = 0;
    for (let index = 0; index < 12; index += 1) mute(index, () => (cut += 1));
    await until(() => xds.state().length === 13);
    const before = process.memoryUsage().rss;
    table.clusters.put(encodedBytes(CLUSTER_TYPE, "cluster-1", randomBytes(MB / 10)));
    const sent = known.client.seen.length;
    xds.push("test");
    await until(() => known.client.seen.length > sent);
    assert.equal(cut, 0, "nobody had to be cut for one who reads");
    await othersAreServed();
    await until(() => cut > 0);
    assert.ok(process.memoryUsage().rss - before < 100 * MB);
  });

  it("never acknowledges: one response, whatever changes", async () => {
    const silent = proxy({ answers: false });
    silent.client.subscribe(CLUSTER_TYPE);
    await until(() => silent.client.seen.length === 1);
    for (let turn = 0; turn < 100; turn += 1) {
      table.clusters.set("cluster-1", String(turn));
      xds.push("test");
      await xds.idle();
    }
    await othersAreServed();
    assert.equal(silent.client.seen.length, 1);
  });

  it("rejects everything: tried, then left alone", async () => {
    const hostile = proxy({ judge: () => "no" });
    hostile.client.subscribe(CLUSTER_TYPE);
    await until(() => xds.state()[0]?.types[0]?.rejected.length === 10);
    await othersAreServed();
    const sent = hostile.client.seen.length;
    for (let turn = 0; turn < 20; turn += 1) {
      xds.push("test");
      await xds.idle();
    }
    // What was sent before the answer to a new question has come by then.
    hostile.client.subscribe(LISTENER_TYPE);
    const listeners = ({ typeUrl }: { readonly typeUrl: string }): boolean => typeUrl === LISTENER_TYPE;
    await until(() => hostile.client.seen.some(listeners));
    assert.ok(hostile.client.seen.filter((one) => !listeners(one)).length <= sent + 1);
    assert.ok(sent < 40, `${sent} responses`);
  });

  it("comes and goes all the time", async () => {
    for (let turn = 0; turn < 200; turn += 1) {
      const brief = proxy();
      brief.client.subscribe(CLUSTER_TYPE);
      if (turn % 2 === 0) await until(() => brief.client.seen.length > 0);
      brief.stream.close();
    }
    await until(() => xds.state().length === 0 && grpc.streams === 0);
    await othersAreServed();
  });
});

describe("a server that goes away", () => {
  it("tells its clients, and takes no more", async () => {
    const { client, ended } = proxy();
    client.subscribe(CLUSTER_TYPE);
    await until(() => client.held(CLUSTER_TYPE).size === 10);
    xds.drain();
    await grpc.drain(1_000);
    assert.equal((await ended)?.code, GRPC_STATUS.UNAVAILABLE);
    const late = proxy();
    late.client.subscribe(CLUSTER_TYPE);
    assert.equal((await late.ended)?.code, GRPC_STATUS.UNAVAILABLE);
  });
});
