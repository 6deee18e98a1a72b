import assert from "node:assert/strict";
import { beforeEach, describe, it } from "vitest";
import { type ManualClock, manualClock } from "../../test/support/manual-clock.ts";
import { connect, envoyProviders, resource, type Seen, testView } from "../../test/support/xds-model.ts";
import { silentLog } from "../base/log.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, ROUTE_TYPE, shortTypeName } from "../wire/type-urls.ts";
import { noMetrics } from "./metrics.ts";
import { createXdsServer, type XdsServer } from "./server.ts";
import type { XdsSettings } from "./settings.ts";

let clock: ManualClock;
let table: ReturnType<typeof envoyProviders>;
let server: XdsServer;

beforeEach(() => {
  clock = manualClock();
  table = envoyProviders();
});

/** Answers lead to further work: settled when nothing happens any more. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 30; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    await server.idle();
  }
}

describe("a crowd that comes at once", () => {
  let order: string[];
  const crowd = (count: number, options: Partial<XdsSettings> = {}) => {
    order = [];
    server = createXdsServer({ providers: table.all, viewOf: (node) => testView(node.id), clock, log: silentLog, settings: options });
    table.clusters.set("a", "1");
    table.endpoints.set("a", "1");
    const join = (name: string) => {
      const judge = ({ typeUrl }: Seen): undefined => void order.push(`${name} ${shortTypeName(typeUrl)}`);
      const connection = connect(server, { variant: "delta", node: `sidecar~1~${name}.b~c`, judge });
      connection.client.subscribe(CLUSTER_TYPE);
      connection.client.subscribe(ENDPOINT_TYPE, ["a"]);
      return connection;
    };
    return { join, all: () => Array.from({ length: count }, (_, index) => join(`new-${index}`)) };
  };

  it("waits unread, while those who were there are served; in the end everybody is", async () => {
    const { join, all } = crowd(500);
    const friend = join("friend");
    await settle();
    const newcomers = all();
    assert.ok(server.load().waiting >= 400, `${server.load().waiting} wait`);
    assert.ok(server.nodes().length <= 100, "those who wait cost no session");
    table.endpoints.set("a", "2");
    table.clusters.set("b", "1");
    server.push("test");
    order.length = 0;
    await settle();
    assert.equal(friend.client.held(CLUSTER_TYPE).size, 2);
    assert.deepEqual(order.slice(0, 2), ["friend eds", "friend cds"], "who was there goes before those who come");
    while (server.load().waiting > 0) await settle();
    await settle();
    for (const { client } of newcomers) assert.equal(client.held(ENDPOINT_TYPE).size, 1);
  });

  it("beyond what may wait is told so", async () => {
    const { all } = crowd(100, { maxWaiting: 10 });
    const refused = all().filter(({ closed }) => closed !== undefined);
    assert.ok(refused.length > 0 && refused.length <= 90, `${refused.length} refused`);
    assert.deepEqual(refused[0]?.closed, {
      status: GRPC_STATUS.RESOURCE_EXHAUSTED,
      reason: "10 proxies wait to be served here already; try again later, or run more control planes",
    });
  });

  it("is sent away while it waits, when the server drains", () => {
    const { all } = crowd(100);
    const newcomers = all();
    server.drain();
    for (const { closed } of newcomers) assert.equal(closed?.status, GRPC_STATUS.UNAVAILABLE);
    assert.equal(server.load().waiting, 0);
  });

  it("who leaves while it waits is forgotten", () => {
    const { all } = crowd(100);
    for (const connection of all()) connection.cut();
    assert.equal(server.load().waiting, 0);
    assert.equal(server.nodes().length, 0);
  });
});

describe("a full push", () => {
  it("does not keep endpoints waiting: they go to all before the rest of the push goes on", async () => {
    const PROXIES = 500;
    const order: string[] = [];
    let tables = Number.NEGATIVE_INFINITY;
    table.routes.set("80", "1");
    table.endpoints.set("a", "1");
    table.routes.prepare = function* () {
      tables += 1;
      if (tables === 10) {
        table.endpoints.set("a", "2");
        server.push("endpoint");
      }
      yield;
    };
    server = createXdsServer({ providers: table.all, viewOf: (node) => testView(node.id), clock, log: silentLog });
    for (let index = 0; index < PROXIES; index += 1) {
      const judge = ({ typeUrl }: Seen): undefined => void order.push(shortTypeName(typeUrl));
      const { client } = connect(server, { variant: "delta", node: `sidecar~1~p-${index}.b~c`, judge });
      client.subscribe(ENDPOINT_TYPE, ["a"]);
      client.subscribe(ROUTE_TYPE, ["80"]);
    }
    await settle();
    assert.equal(order.length, 2 * PROXIES);
    order.length = 0;
    tables = 0;
    table.routes.set("80", "2");
    server.push("route");
    await settle();
    assert.equal(order.length, 2 * PROXIES);
    assert.equal(order.lastIndexOf("eds"), 9 + PROXIES - 1, "all endpoints go between the tenth table and the next");
  });
});

describe("while there is no room", () => {
  it("nothing is worked out for those who wait, however often inputs change; then they are sent the newest, once", async () => {
    const content = (version: number): string => `${version} ${"x".repeat(1_000)}`;
    table.routes.set("80", content(0));
    let looks = 0;
    const offered = table.routes.offered.bind(table.routes);
    table.routes.offered = (view, wanted) => {
      looks += 1;
      return offered(view, wanted);
    };
    const settings = { windowBytes: 2_000 };
    server = createXdsServer({ providers: table.all, viewOf: (node) => testView(node.id), clock, log: silentLog, settings });
    const first = { variant: "delta" as const, node: "sidecar~1~first.b~c", reads: true };
    const reader = connect(server, first);
    reader.client.subscribe(ROUTE_TYPE, ["80"]);
    await settle();
    const others = Array.from({ length: 10 }, (_, index) => connect(server, { variant: "delta", node: `sidecar~1~p-${index}.b~c` }));
    for (const { client } of others) client.subscribe(ROUTE_TYPE, ["80"]);
    await settle();
    first.reads = false;
    looks = 0;
    for (let version = 1; version <= 5; version += 1) {
      table.routes.set("80", content(version));
      server.push("route");
      await settle();
    }
    assert.equal(looks, 1, "what fills the window was looked at, and nothing else");
    reader.cut();
    await settle();
    assert.ok(looks <= 2 * others.length, `${looks} looks for ${others.length} who were sent something`);
    for (const { client } of others) {
      assert.equal(client.held(ROUTE_TYPE).get("80"), resource(ROUTE_TYPE, "80", content(5)).version);
      assert.equal(client.seen.length, 2, "versions in between are never sent");
    }
  });
});

describe("a proxy that changes while others have their turn", () => {
  it("is served as what it is now", async () => {
    const offered = table.clusters.offered.bind(table.clusters);
    let view = { ...testView("x"), labels: { app: "old" } };
    table.clusters.offered = (of, wanted) => {
      table.clusters.set("whose", of.labels.app ?? "");
      return offered(of, wanted);
    };
    table.clusters.prepare = function* () {
      yield;
      if (view.labels.app === "new") return;
      view = { ...view, labels: { app: "new" } };
      server.push("others had their turn");
      yield;
    };
    server = createXdsServer({ providers: table.all, viewOf: () => view, clock, log: silentLog });
    const { client } = connect(server, { variant: "delta" });
    client.subscribe(CLUSTER_TYPE);
    await settle();
    assert.equal(client.held(CLUSTER_TYPE).get("whose"), resource(CLUSTER_TYPE, "whose", "new").version);
  });
});

describe("where memory is short", () => {
  it("streams that do not read are cut, those for which most is kept first, and others are served", async () => {
    const shed: string[] = [];
    server = createXdsServer({
      providers: table.all,
      viewOf: (node) => testView(node.id),
      clock,
      log: silentLog,
      metrics: { ...noMetrics, shed: () => shed.push("one") },
    });
    for (let index = 0; index < 10; index += 1) table.clusters.set(`cluster-${index}`, "x".repeat(1_000));
    const deaf = Array.from({ length: 15 }, (_, index) =>
      connect(server, { variant: "delta", node: `sidecar~1~deaf-${index}.b~c`, reads: false }),
    );
    for (const { client } of deaf) client.subscribe(CLUSTER_TYPE);
    const friend = connect(server, { variant: "delta" });
    friend.client.subscribe(CLUSTER_TYPE);
    await settle();
    clock.advance(2_000);
    server.relieve("tight");
    assert.deepEqual(shed, []);
    const late = connect(server, { variant: "delta", node: "sidecar~1~late.b~c" });
    late.client.subscribe(CLUSTER_TYPE);
    server.relieve("critical");
    assert.equal(shed.length, 2, "a tenth of those who do not read");
    while (shed.length < 15) server.relieve("critical");
    assert.ok(deaf.every(({ closed }) => closed !== undefined));
    assert.equal(server.load().unsentBytes, 0);
    table.clusters.set("cluster-0", "2");
    server.push("test");
    await settle();
    assert.equal(friend.client.seen.length, 2);
    assert.equal(connect(server, { variant: "delta" }).closed?.status, GRPC_STATUS.RESOURCE_EXHAUSTED);
    server.relieve("none");
    await settle();
    assert.equal(late.client.held(CLUSTER_TYPE).size, 10);
  });
});
