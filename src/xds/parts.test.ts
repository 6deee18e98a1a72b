import assert from "node:assert/strict";
import { beforeEach, describe, it } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { type Connection, connect, envoyProviders, HOSTS_NODE, type ModelClientOptions, testView } from "../../test/support/xds-model.ts";
import { silentLog } from "../base/log.ts";
import { CLUSTER_TYPE, LISTENER_TYPE, ROUTE_TYPE, shortTypeName, VIRTUAL_HOST_TYPE } from "../wire/type-urls.ts";
import { createXdsServer, type XdsServer } from "./server.ts";

let table: ReturnType<typeof envoyProviders>;
let server: XdsServer;

beforeEach(() => {
  table = envoyProviders();
  server = createXdsServer({ providers: table.all, viewOf: (node) => testView(node.id), clock: manualClock(), log: silentLog });
  for (const name of ["80", "81"]) table.routes.set(name, "1");
  for (const name of ["80/a", "80/b", "81/c"]) table.hosts.set(name, "1");
});

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

/** A client as Envoy is: it asks for a table, and for hosts, without names, when the first table has come. */
async function client(options: Partial<ModelClientOptions> = {}): Promise<Connection> {
  const connection = connect(server, { variant: "delta", node: HOSTS_NODE, ...options });
  connection.client.subscribe(ROUTE_TYPE, ["80"]);
  await settle();
  connection.client.subscribe(VIRTUAL_HOST_TYPE);
  await settle();
  return connection;
}

/** What came since the last look. */
function news({ client: { seen } }: Connection): readonly string[] {
  const texts = seen.map(({ typeUrl, names, removed }) =>
    [shortTypeName(typeUrl), [...names].sort().join(), ...removed.toSorted().map((name) => `-${name}`)]
      .filter((part) => part !== "")
      .join(" "),
  );
  seen.length = 0;
  return texts;
}

describe("parts", () => {
  it("are those of the wholes that a client asked for, and are sent one by one from then on", async () => {
    const one = await client();
    assert.deepEqual(news(one), ["rds 80", "vhds 80/a,80/b"]);
    table.hosts.set("80/b", "2");
    table.hosts.set("80/d", "1");
    table.hosts.delete("80/a");
    table.hosts.set("81/c", "2");
    await push();
    assert.deepEqual(news(one), ["vhds 80/b,80/d -80/a"]);
  });

  it("follow a whole that is asked for late, after it, and one that is asked for again", async () => {
    const one = await client();
    news(one);
    one.client.subscribe(ROUTE_TYPE, ["81"]);
    await settle();
    assert.deepEqual(news(one), ["rds 81", "vhds 81/c"]);
    one.client.unsubscribe(ROUTE_TYPE, ["81"]);
    one.client.subscribe(ROUTE_TYPE, ["81"]);
    await settle();
    assert.deepEqual(news(one), ["rds 81", "vhds 81/c"]);
    one.client.unsubscribe(ROUTE_TYPE, ["81"]);
    await settle();
    assert.deepEqual(news(one), ["vhds -81/c"]);
  });

  it("are not sent again to one who reconnects with all of them, and the difference is to one who has not", async () => {
    const one = await client();
    one.cut();
    news(one);
    one.again();
    await settle();
    assert.deepEqual(news(one), []);
    one.cut();
    table.hosts.set("80/a", "2");
    one.again();
    await settle();
    assert.deepEqual(news(one), ["vhds 80/a"]);
  });

  it("are sent again with a whole that the client no longer holds, whatever it says of the parts", async () => {
    const one = await client();
    one.cut();
    news(one);
    one.client.forget(ROUTE_TYPE, "80");
    one.again();
    await settle();
    assert.deepEqual(news(one), ["rds 80", "vhds 80/a,80/b"]);
  });

  it("that are refused cost no other part", async () => {
    const judge: NonNullable<ModelClientOptions["judge"]> = (_, contents) => (contents.has("80/b") ? "no" : undefined);
    const one = await client({ judge });
    assert.deepEqual([...one.client.held(VIRTUAL_HOST_TYPE).keys()], ["80/a"]);
    assert.deepEqual(
      server
        .state()[0]
        ?.types.find(({ typeUrl }) => typeUrl === VIRTUAL_HOST_TYPE)
        ?.rejected.map(({ name }) => name),
      ["80/b"],
    );
    news(one);
    table.hosts.set("80/a", "2");
    await push();
    assert.deepEqual(news(one), ["vhds 80/a"]);
  });

  it("that refer to a cluster let go of it before it is removed, and only of clients that ask for them is that awaited", async () => {
    table.clusters.set("x", "1");
    const asking = connect(server, { variant: "delta", node: HOSTS_NODE, answers: false });
    const other = connect(server, { variant: "delta" });
    for (const { client: one } of [asking, other]) {
      one.subscribe(CLUSTER_TYPE);
      one.subscribe(LISTENER_TYPE);
      one.subscribe(ROUTE_TYPE, ["80"]);
    }
    for (let round = 0; round < 3; round += 1) {
      await settle();
      for (const response of asking.client.seen.splice(0)) asking.client.answer(response);
    }
    asking.client.subscribe(VIRTUAL_HOST_TYPE);
    await settle();
    const [hosts] = asking.client.seen;
    assert.deepEqual(news(asking), ["vhds 80/a,80/b"]);
    news(other);
    table.clusters.delete("x");
    await push();
    assert.deepEqual(news(other), ["cds -x"]);
    assert.deepEqual(news(asking), [], "its hosts are not acknowledged");
    assert.ok(hosts !== undefined);
    asking.client.answer(hosts);
    await settle();
    assert.deepEqual(news(asking), ["cds -x"]);
  });
});
