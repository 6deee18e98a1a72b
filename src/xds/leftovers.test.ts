import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { beforeEach, describe, expect, it } from "vitest";
import { type ManualClock, manualClock } from "../../test/support/manual-clock.ts";
import { type Connection, connect, envoyProviders, type ModelClientOptions } from "../../test/support/xds-model.ts";
import { silentLog } from "../base/log.ts";
import { DeltaDiscoveryRequestSchema } from "../gen/envoy/service/discovery/v3/discovery_pb.js";
import type { ProxyView } from "../model/proxy.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, ROUTE_TYPE } from "../wire/type-urls.ts";
import { createXdsServer, type XdsServer } from "./server.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const KB = 1024;
const WATCH_MS = 1_000;
const MINUTE_MS = 60_000;

let clock: ManualClock;
let table: ReturnType<typeof envoyProviders>;
let server: XdsServer;

/** The namespace is the last part of a node id. */
const viewOf = ({ id }: { readonly id: string }) => ({ id, type: "sidecar", namespace: id.split("~").at(-1) }) as ProxyView;

function start(receipts?: Parameters<typeof createXdsServer>[0]["receipts"]): void {
  server = createXdsServer({ providers: table.all, viewOf, clock, log: silentLog, ...(receipts !== undefined && { receipts }) });
}

beforeEach(() => {
  clock = manualClock();
  table = envoyProviders();
  start();
});

async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    await server.idle();
  }
}

/** Lets the server look after what it keeps. */
async function later(ms: number): Promise<void> {
  clock.advance(ms);
  await settle();
}

const come = (namespace: string, options: Partial<ModelClientOptions> = {}): Connection =>
  connect(server, { variant: "delta", node: `sidecar~10.0.0.1~a~${namespace}`, ...options });

const say = (connection: Connection, request: MessageInitShape<typeof DeltaDiscoveryRequestSchema>): void =>
  connection.say(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, request)));

async function heldBytes(): Promise<number> {
  for (let turn = 0; turn < 3; turn += 1) {
    await new Promise((resolve) => setTimeout(resolve, 10)); // Those who wait to hear of what was collected are told.
    collect();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** What one turn leaves behind for good, on average, after some that may fill what is kept on purpose. */
async function leftBehind({ first, times }: { readonly first: number; readonly times: number }, turn: (index: number) => Promise<void>) {
  for (let index = 0; index < first; index += 1) await turn(index);
  const before = await heldBytes();
  for (let index = first; index < first + times; index += 1) await turn(index);
  return ((await heldBytes()) - before) / times;
}

describe("clients that go leave nothing behind", () => {
  it("of what was served to their namespaces, each at its time", async () => {
    const names = Array.from({ length: 100 }, (_, index) => `c${index}`);
    come("another").client.subscribe(CLUSTER_TYPE);
    const left = await leftBehind({ first: 400, times: 400 }, async (turn) => {
      for (const name of names) table.endpoints.set(name, `${turn}`);
      table.routes.set("80", `${turn}`.repeat(20_000));
      const { client, cut } = come(`ns-${turn}`);
      client.subscribe(ENDPOINT_TYPE, names);
      client.subscribe(ROUTE_TYPE, ["80"]);
      await settle();
      cut();
      for (let second = 0; second < 10; second += 1) await later(WATCH_MS);
    });
    assert.ok(left < 20 * KB, `${left} bytes of each namespace`);
  });

  it("of names as long as they like", async () => {
    const left = await leftBehind({ first: 20, times: 40 }, async (turn) => {
      const { client, cut } = come("shop");
      client.subscribe(ENDPOINT_TYPE, [`${turn}${"x".repeat(1_000 * KB)}`]);
      await settle();
      cut();
      table.endpoints.changed();
      await later(WATCH_MS);
    });
    assert.ok(left < 300 * KB, `${left} bytes of each name`);
  });

  it("of what they say they hold, where receipts are kept and none is theirs", async () => {
    start({ has: () => false, drop: () => {}, stirred: () => {} });
    const left = await leftBehind({ first: 2, times: 300 }, async (turn) => {
      const connection = come("shop");
      const initialResourceVersions = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`${turn} ${index}`, "1"]));
      say(connection, { node: { id: "sidecar~10.0.0.1~a~shop" }, typeUrl: CLUSTER_TYPE, initialResourceVersions });
      await settle();
      connection.cut();
      await later(WATCH_MS);
    });
    assert.ok(left < 80 * KB, `${left} bytes of each client`);
  });

  it("of what they rejected", async () => {
    come("another").client.subscribe(ENDPOINT_TYPE, ["a"]);
    for (let index = 0; index < 1_000; index += 1) table.clusters.set(`cluster-${index}`, "1");
    const left = await leftBehind({ first: 400, times: 150 }, async (turn) => {
      const judge = ({ names }: { readonly names: readonly string[] }) => (names.length > 990 ? `cluster-${turn} is bad` : undefined);
      const { client, cut } = come("shop", { judge });
      client.subscribe(CLUSTER_TYPE);
      await settle();
      cut();
      await later(WATCH_MS);
    });
    assert.ok(left < 40 * KB, `${left} bytes of each client`);
  });
});

describe("a client that stays does not make more of itself", () => {
  it("by asking, one name after the other, for what is not there", async () => {
    for (let index = 0; index < 20; index += 1) table.clusters.set(`c${index}`, "1");
    const all = table.clusters.offered(viewOf({ id: "" }), { wildcard: true, names: { id: 0, names: new Set() } });
    table.clusters.standing = () => all;
    const connection = come("shop");
    connection.client.subscribe(CLUSTER_TYPE);
    await settle();
    const left = await leftBehind({ first: 2_000, times: 4_000 }, async (turn) => {
      say(connection, { typeUrl: CLUSTER_TYPE, resourceNamesSubscribe: [`gone-${turn}`] });
      await settle();
      assert.deepEqual(connection.client.seen.splice(0).at(-1)?.removed, [`gone-${turn}`]);
      say(connection, { typeUrl: CLUSTER_TYPE, resourceNamesUnsubscribe: [`gone-${turn}`] });
      await settle();
      connection.client.seen.length = 0;
      await later(WATCH_MS);
    });
    assert.ok(left < 300, `${left} bytes of each name`);
  });

  it("by never answering, whatever it asks for meanwhile", async () => {
    const connection = come("shop", { answers: false });
    connection.client.subscribe(ENDPOINT_TYPE, ["a"]);
    await settle();
    const asks = async (turn: number) => {
      for (const name of [`${turn}`, "a"]) {
        say(connection, { typeUrl: ENDPOINT_TYPE, resourceNamesSubscribe: [name] });
        if (name !== "a") say(connection, { typeUrl: ENDPOINT_TYPE, resourceNamesUnsubscribe: [name] });
      }
    };
    const startedAt = performance.now();
    for (let turn = 0; turn < 1_000; turn += 1) await asks(turn);
    const spent = performance.now() - startedAt;
    for (let turn = 1_000; turn < 3_000; turn += 1) await asks(turn);
    const again = performance.now();
    for (let turn = 3_000; turn < 4_000; turn += 1) await asks(turn);
    assert.ok(performance.now() - again < 3 * spent + 100, "the last requests take no longer than the first");
    assert.deepEqual(connection.client.seen.length, 1);
    connection.client.answer(connection.client.seen[0] ?? expect.fail("it was answered"));
    await settle();
    assert.deepEqual(connection.client.seen[1]?.removed, ["a"], "what it asked for again it is told of");
  });
});

describe("what was served last", () => {
  const fails = (name: string): void => {
    table.clusters.failed = [{ name, message: "boom" }];
    table.clusters.changed();
  };

  it("is there for who comes in the place of one that was connected for long", async () => {
    table.clusters.set("a", "1");
    const first = come("shop");
    first.client.subscribe(CLUSTER_TYPE);
    await settle();
    for (let minute = 0; minute < 60; minute += 1) await later(MINUTE_MS);
    fails("a");
    first.cut();
    come("watched");
    for (let minute = 0; minute < 4; minute += 1) await later(MINUTE_MS);
    collect();
    const second = come("shop");
    second.client.subscribe(CLUSTER_TYPE);
    await settle();
    assert.deepEqual([...second.client.held(CLUSTER_TYPE).keys()], ["a"]);
  });
});
