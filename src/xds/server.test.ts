import assert from "node:assert/strict";
import { create, toBinary } from "@bufbuild/protobuf";
import { beforeEach, describe, it } from "vitest";
import { type ManualClock, manualClock } from "../../test/support/manual-clock.ts";
import { connect, envoyProviders, type Seen, testView } from "../../test/support/xds-model.ts";
import { silentLog } from "../base/log.ts";
import { DeltaDiscoveryRequestSchema } from "../gen/envoy/service/discovery/v3/discovery_pb.js";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE, shortTypeName } from "../wire/type-urls.ts";
import type { RoundSummary } from "./rounds.ts";
import { createXdsServer, type XdsServer } from "./server.ts";

let clock: ManualClock;
let table: ReturnType<typeof envoyProviders>;
let server: XdsServer;
let rounds: RoundSummary[];

beforeEach(() => {
  clock = manualClock();
  table = envoyProviders();
  rounds = [];
  server = createXdsServer({
    providers: table.all,
    viewOf: (node) => testView(node.id),
    clock,
    log: silentLog,
    pushed: (summary) => rounds.push(summary),
  });
});

/** Answers lead to further work: settled when nothing happens any more. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 30; turn += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    await server.idle();
  }
}

async function push(): Promise<void> {
  server.push("test");
  await settle();
}

const brief = (seen: readonly Seen[]): string[] =>
  seen.map((one) =>
    [
      shortTypeName(one.typeUrl),
      ...(one.names.length > 0 ? [[...one.names].sort().join()] : []),
      ...(one.removed.length > 0 ? [`-${[...one.removed].sort().join()}`] : []),
    ].join(" "),
  );

describe("a delta stream", () => {
  it("is sent everything once, then only what changed", async () => {
    table.clusters.set("a", "1");
    table.clusters.set("b", "1");
    const { client } = connect(server, { variant: "delta" });
    client.subscribe(CLUSTER_TYPE);
    await settle();
    table.clusters.set("b", "2");
    table.clusters.set("c", "1");
    await push();
    await push();
    assert.deepEqual(brief(client.seen), ["cds a,b", "cds b,c"]);
  });

  it("is in step once it has answered, in whatever words", async () => {
    table.clusters.set("a", "1");
    const words = {
      fewest: (nonce: string) => ({ typeUrl: CLUSTER_TYPE, responseNonce: nonce }),
      "with its node again": (nonce: string) => ({ typeUrl: CLUSTER_TYPE, responseNonce: nonce, node: { id: "again" } }),
      "about another response": (nonce: string) => ({ typeUrl: CLUSTER_TYPE, responseNonce: nonce.replace(/.$/, "?") }),
      "of another type": (nonce: string) => ({ typeUrl: LISTENER_TYPE, responseNonce: nonce }),
      refusing: (nonce: string) => ({ typeUrl: CLUSTER_TYPE, responseNonce: nonce, errorDetail: { message: "no" } }),
    };
    const inSync = new Map<string, boolean | undefined>();
    for (const [name, said] of Object.entries(words)) {
      const { client, say } = connect(server, { variant: "delta", node: name, answers: false });
      client.subscribe(CLUSTER_TYPE);
      await settle();
      const [response] = client.seen;
      assert.ok(response);
      say(toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, said(response.nonce))));
      const [clusters] = server.state().find(({ node }) => node === name)?.types ?? [];
      inSync.set(name, clusters?.inSync);
      await settle();
    }
    assert.deepEqual(Object.fromEntries(inSync), {
      fewest: true,
      "with its node again": true,
      "about another response": false,
      "of another type": false,
      refusing: false,
    });
  });

  it("is answered at first even with nothing", async () => {
    const { client } = connect(server, { variant: "delta" });
    client.subscribe(LISTENER_TYPE);
    await settle();
    assert.deepEqual(brief(client.seen), ["lds"]);
  });

  it("is told at once what does not exist, and is sent it when it does", async () => {
    const { client } = connect(server, { variant: "delta" });
    client.subscribe(ROUTE_TYPE, ["80", "81"]);
    await settle();
    table.routes.set("80", "1");
    table.routes.set("82", "1");
    await push();
    assert.deepEqual(brief(client.seen), ["rds -80,81", "rds 80"]);
  });

  it("is sent again what it subscribes to again", async () => {
    table.routes.set("80", "1");
    const { client } = connect(server, { variant: "delta" });
    client.subscribe(ROUTE_TYPE, ["80"]);
    await settle();
    client.subscribe(ROUTE_TYPE, ["80"]);
    await settle();
    client.unsubscribe(ROUTE_TYPE, ["80"]);
    await settle();
    table.routes.set("80", "2");
    await push();
    client.subscribe(ROUTE_TYPE, ["80"]);
    await settle();
    assert.deepEqual(brief(client.seen), ["rds 80", "rds 80", "rds 80"]);
  });

  it("is sent nothing when it reconnects and nothing changed, and the difference when something did", async () => {
    table.clusters.set("a", "1");
    table.clusters.set("b", "1");
    table.endpoints.set("a", "1");
    const connection = connect(server, { variant: "delta" });
    connection.client.subscribe(CLUSTER_TYPE);
    connection.client.subscribe(ENDPOINT_TYPE, ["a"]);
    await settle();
    connection.client.seen.length = 0;
    connection.again();
    await settle();
    assert.deepEqual(brief(connection.client.seen), []);
    connection.cut();
    table.clusters.set("a", "2");
    connection.again();
    await settle();
    assert.deepEqual(
      brief(connection.client.seen),
      ["cds a", "eds a"],
      "the assignment of the changed cluster follows, although unchanged",
    );
    assert.ok(server.state()[0]?.types.every((type) => type.inSync));
  });

  it("that opens with assignments before clusters is still warming: what it claims to hold is sent again", async () => {
    table.clusters.set("a", "1");
    table.endpoints.set("a", "1");
    const connection = connect(server, { variant: "delta" });
    connection.client.subscribe(CLUSTER_TYPE);
    connection.client.subscribe(ENDPOINT_TYPE, ["a"]);
    await settle();
    connection.client.seen.length = 0;
    connection.again([ENDPOINT_TYPE, CLUSTER_TYPE]);
    await settle();
    assert.deepEqual(brief(connection.client.seen), ["eds a"]);
  });

  it("has one response of a type in flight; what changes meanwhile is merged", async () => {
    table.clusters.set("a", "1");
    const { client } = connect(server, { variant: "delta", answers: false });
    client.subscribe(CLUSTER_TYPE);
    await settle();
    for (let version = 2; version < 50; version += 1) {
      table.clusters.set("a", String(version));
      table.clusters.set(`x${version}`, "1");
      await push();
    }
    assert.equal(client.seen.length, 1);
    client.answer(client.seen[0] as Seen);
    await settle();
    assert.equal(client.seen.length, 2);
    assert.equal(client.seen[1]?.names.length, 49);
  });
});

describe("companions", () => {
  it("follow a changed owner without waiting for its acknowledgement", async () => {
    for (const name of ["a", "b"]) {
      table.clusters.set(name, "1");
      table.endpoints.set(name, "1");
    }
    const { client } = connect(server, { variant: "delta", answers: false });
    client.subscribe(CLUSTER_TYPE);
    client.subscribe(ENDPOINT_TYPE, ["a", "b"]);
    await settle();
    for (const one of [...client.seen]) client.answer(one);
    await settle();
    client.seen.length = 0;
    table.clusters.set("b", "2");
    await push();
    assert.deepEqual(brief(client.seen), ["cds b", "eds b"]);
  });

  it("are owed again when one was already on its way", async () => {
    table.clusters.set("a", "1");
    table.endpoints.set("a", "1");
    const { client } = connect(server, { variant: "delta", answers: false });
    client.subscribe(CLUSTER_TYPE);
    client.subscribe(ENDPOINT_TYPE, ["a"]);
    await settle();
    for (const one of [...client.seen]) client.answer(one);
    await settle();
    client.seen.length = 0;
    table.clusters.set("a", "2");
    table.endpoints.set("a", "2");
    await push();
    assert.deepEqual(brief(client.seen), ["eds a", "cds a"], "urgent types go first");
    client.answer(client.seen[0] as Seen);
    await settle();
    assert.deepEqual(brief(client.seen), ["eds a", "cds a", "eds a"]);
  });
});

describe("order", () => {
  for (const variant of ["delta", "sotw"] as const) {
    it(`${variant}: clusters before routes, and gone only after routes have let go of them`, async () => {
      table.clusters.set("old", "1");
      table.routes.set("80", "to old");
      const { client } = connect(server, { variant });
      client.subscribe(CLUSTER_TYPE);
      client.subscribe(LISTENER_TYPE);
      client.subscribe(ROUTE_TYPE, ["80"]);
      await settle();
      client.seen.length = 0;
      table.clusters.delete("old");
      table.clusters.set("new", "1");
      table.routes.set("80", "to new");
      await push();
      assert.deepEqual(brief(client.seen), variant === "delta" ? ["cds new", "rds 80", "cds -old"] : ["cds new,old", "rds 80", "cds new"]);
    });
  }

  it("waits for types a client has not asked for only while the stream is young", async () => {
    table.clusters.set("old", "1");
    table.endpoints.set("old", "1");
    const { client } = connect(server, { variant: "delta" });
    client.subscribe(CLUSTER_TYPE);
    client.subscribe(ENDPOINT_TYPE, ["old"]);
    client.subscribe(LISTENER_TYPE);
    await settle();
    client.seen.length = 0;
    clock.advance(3_000);
    table.clusters.delete("old");
    table.endpoints.delete("old");
    await push();
    assert.deepEqual(brief(client.seen), []);
    clock.advance(2_000);
    await settle();
    assert.deepEqual(brief(client.seen), ["cds -old", "eds -old"]);
  });

  it("does not wait for ever for a client that does not answer", async () => {
    table.clusters.set("old", "1");
    table.routes.set("80", "to old");
    const { client } = connect(server, { variant: "delta", answers: false });
    client.subscribe(CLUSTER_TYPE);
    client.subscribe(ROUTE_TYPE, ["80"]);
    await settle();
    assert.deepEqual(brief(client.seen), ["cds old"]);
    clock.advance(2_000);
    await settle();
    assert.deepEqual(brief(client.seen), ["cds old", "rds 80"]);
    client.answer(client.seen[0] as Seen);
    table.clusters.delete("old");
    table.routes.set("80", "to none");
    await push();
    assert.equal(client.seen.length, 2);
    clock.advance(5_000);
    await settle();
    assert.deepEqual(brief(client.seen).slice(2), ["cds -old"]);
  });
});

describe("a rejection", () => {
  for (const variant of ["delta", "sotw"] as const) {
    it(`${variant}: costs the offender only, named or not, and is not repeated`, async () => {
      for (const named of [true, false]) {
        table = envoyProviders();
        server = createXdsServer({ providers: table.all, viewOf: (node) => testView(node.id), clock, log: silentLog });
        for (let index = 0; index < 20; index += 1) table.clusters.set(`cluster-${index}`, "good");
        let nacks = 0;
        const bad = new Set<string>();
        const { client } = connect(server, {
          variant,
          judge(_response, contents) {
            const offender = [...contents].find(([, version]) => bad.has(version))?.[0];
            if (offender === undefined) return undefined;
            nacks += 1;
            return named ? `Error adding/updating cluster(s) ${offender}: no good` : "something is wrong";
          },
        });
        client.subscribe(CLUSTER_TYPE);
        await settle();
        const goodVersion = client.held(CLUSTER_TYPE).get("cluster-7");
        for (let index = 0; index < 20; index += 1) table.clusters.set(`cluster-${index}`, "changed");
        const offered = table.clusters.offered(testView(""), { wildcard: true, names: { id: 0, names: new Set() } });
        bad.add(offered.resources.get("cluster-7")?.version ?? "");
        await push();
        await settle();
        for (const [name, { version }] of offered.resources)
          assert.equal(client.held(CLUSTER_TYPE).get(name), name === "cluster-7" ? goodVersion : version, name);
        const before = nacks;
        assert.ok(named ? before === 1 : before <= 7, `${before} rejections`);
        await push();
        table.clusters.set("cluster-1", "again");
        await push();
        assert.equal(nacks, before, "not sent again");
        assert.deepEqual(
          server.state()[0]?.types[0]?.rejected.map((one) => one.name),
          ["cluster-7"],
        );
        table.clusters.set("cluster-7", "mended");
        await push();
        assert.equal(nacks, before);
        assert.deepEqual(server.state()[0]?.types[0]?.rejected, []);
      }
    });
  }

  it("of everything ends, and others are served", async () => {
    for (let index = 0; index < 100; index += 1) table.clusters.set(`cluster-${index}`, "1");
    const hostile = connect(server, { variant: "delta", judge: () => "no", node: "sidecar~1~x.y~z" });
    const friend = connect(server, { variant: "delta" });
    hostile.client.subscribe(CLUSTER_TYPE);
    friend.client.subscribe(CLUSTER_TYPE);
    for (let turn = 0; turn < 10; turn += 1) await settle();
    const count = hostile.client.seen.length;
    await push();
    assert.equal(hostile.client.seen.length, count);
    assert.ok(count < 250, `${count} responses`);
    assert.equal(friend.client.held(CLUSTER_TYPE).size, 100);
  });
});

describe("a resource that cannot be made", () => {
  for (const variant of ["delta", "sotw"] as const) {
    it(`${variant}: stays as it is for those who have it, and is the last good one for those who come`, async () => {
      table.clusters.set("a", "1");
      table.clusters.set("b", "1");
      const before = connect(server, { variant });
      before.client.subscribe(CLUSTER_TYPE);
      await settle();
      table.clusters.failed = [{ name: "a", message: "boom" }];
      table.clusters.set("b", "2");
      await push();
      const after = connect(server, { variant });
      after.client.subscribe(CLUSTER_TYPE);
      await settle();
      assert.deepEqual(after.client.held(CLUSTER_TYPE), before.client.held(CLUSTER_TYPE));
      assert.equal(before.client.held(CLUSTER_TYPE).size, 2);
      assert.deepEqual(server.state()[0]?.types[0]?.failed, [{ name: "a", message: "boom" }]);
    });
  }
});

describe("a push", () => {
  it("is summed up when the last proxy has acknowledged", async () => {
    table.clusters.set("a", "1");
    table.endpoints.set("a", "1");
    const clients = [1, 2, 3].map((index) => connect(server, { variant: "delta", node: `sidecar~${index}~a.b~c` }));
    for (const { client } of clients) {
      client.subscribe(CLUSTER_TYPE);
      client.subscribe(ENDPOINT_TYPE, ["a"]);
    }
    await settle();
    table.clusters.set("a", "2");
    table.clusters.set("b", "1");
    await push();
    assert.equal(rounds.length, 1);
    assert.deepEqual(
      rounds[0]?.resources,
      new Map([
        [CLUSTER_TYPE, 2],
        [ENDPOINT_TYPE, 1],
      ]),
    );
    assert.equal(rounds[0]?.proxies, 3);
    await push();
    assert.equal(rounds[1]?.proxies, 0);
  });

  it("is summed up in time although one never answers", async () => {
    const { client } = connect(server, { variant: "delta", answers: false });
    client.subscribe(CLUSTER_TYPE);
    await settle();
    await push();
    assert.equal(rounds.length, 0);
    clock.advance(30_000);
    assert.equal(rounds[0]?.unsettled, 1);
  });
});
