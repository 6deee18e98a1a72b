import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { holds } from "../../test/support/holds.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { connect, envoyProviders, resource, testView } from "../../test/support/xds-model.ts";
import { silentLog } from "../base/log.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE } from "../wire/type-urls.ts";
import type { Holding } from "./holding.ts";
import { noMetrics, type SentEvent } from "./metrics.ts";
import { createNameSets } from "./name-sets.ts";
import { Confirmations, type KeptReceipts, type Receipted } from "./receipts.ts";
import { createXdsServer } from "./server.ts";
import { listedVersions, setVersion } from "./set-version.ts";

const NODE = "sidecar~10.0.0.1~a.default~default.svc.cluster.local";

/** One control plane after another, with what each leaves behind. */
function rig(kept: readonly string[] = []) {
  const clock = manualClock();
  const table = envoyProviders();
  let receipts: ReadonlySet<string> | undefined = new Set(kept);
  const looks = table.all.map((provider) => vi.spyOn(provider, "prepare"));
  const file: KeptReceipts = {
    has: (receipt) => receipts?.has(receipt) === true,
    drop: () => {
      receipts = undefined;
    },
    stirred: () => {},
  };
  /** Of each response whether it is a greeting. */
  const greets: boolean[] = [];
  const metrics = { ...noMetrics, sent: ({ isGreeting }: SentEvent) => void greets.push(isGreeting) };
  const viewOf = (node: { readonly id: string }) => testView(node.id);
  const server = createXdsServer({ providers: table.all, viewOf, clock, log: silentLog, receipts: file, metrics });
  return {
    ...{ clock, server, greets, ...table },
    /** How often resources were worked out. */
    asked: () => looks.reduce((sum, { mock }) => sum + mock.calls.length, 0),
    inputsChanged: file.drop,
    left: () => [...server.receipts()].filter((receipt) => receipt !== undefined),
  };
}

async function served() {
  const first = rig();
  first.clusters.set("alpha", "1");
  first.endpoints.set("alpha", "1");
  const connection = connect(first.server, { variant: "delta", node: NODE });
  const { client } = connection;
  client.subscribe(CLUSTER_TYPE);
  await first.server.idle();
  client.subscribe(ENDPOINT_TYPE, ["alpha"]);
  await first.server.idle();
  return {
    first,
    client,
    connection,
    receipts: first.left(),
    comeBackTo: ({ server }: ReturnType<typeof rig>) => connection.again(undefined, server),
  };
}

describe("a proxy that comes back after a restart", () => {
  it("with all it had is sent nothing and nothing is worked out, until it is quiet", async () => {
    const { receipts, client, comeBackTo } = await served();
    expect(receipts).toHaveLength(2);
    const second = rig(receipts);
    second.clusters.set("alpha", "1");
    second.endpoints.set("alpha", "1");
    const seen = client.seen.length;
    comeBackTo(second);
    await second.server.idle();
    expect(second.asked()).toBe(0);
    expect(second.server.state()[0]?.types.every(({ inSync }) => inSync)).toBe(true);
    expect(second.left().sort()).toEqual([...receipts].sort());
    second.clock.advance(6_000);
    await second.server.idle();
    expect(second.asked()).toBe(2);
    expect(client.seen.length).toBe(seen);
    second.endpoints.set("alpha", "2");
    second.server.push("a change");
    await second.server.idle();
    expect(client.seen.slice(seen).map(({ typeUrl, names }) => [typeUrl, names])).toEqual([[ENDPOINT_TYPE, ["alpha"]]]);
    second.clock.advance(60_000);
    await second.server.idle();
    expect(client.seen.length, "who was sent something needs no other word").toBe(seen + 1);
  });

  it("and needs nothing is let know at once that it is served, and is sent nothing for it", async () => {
    const { receipts, client, connection, comeBackTo } = await served();
    const second = rig(receipts);
    const seen = client.seen.length;
    expect(connection.begun, "who is sent something needs no other word").toBe(0);
    comeBackTo(second);
    expect(connection.begun).toBeGreaterThan(0);
    await second.server.idle();
    second.clock.advance(1_000);
    expect(client.seen.length).toBe(seen);
  });

  it("and needs nothing for long is sent one response without content, by which Envoy knows the stream for good", async () => {
    const { first, receipts, client, comeBackTo } = await served();
    const second = rig(receipts);
    second.clusters.set("alpha", "1");
    second.endpoints.set("alpha", "1");
    const seen = client.seen.length;
    comeBackTo(second);
    for (let at = 0; at < 29; at++) {
      second.clock.advance(1_000);
      await second.server.idle();
    }
    expect(client.seen.length).toBe(seen);
    for (let at = 0; at < 60; at++) {
      second.clock.advance(1_000);
      await second.server.idle();
    }
    expect(client.seen.slice(seen).map(({ typeUrl, names }) => [typeUrl, names])).toEqual([[CLUSTER_TYPE, []]]);
    expect([first.greets, second.greets], "it is known from responses that have content").toEqual([[false, false], [true]]);
    expect([...client.held(CLUSTER_TYPE).keys()]).toEqual(["alpha"]);
    expect(second.server.state()[0]?.types.every(({ inSync }) => inSync)).toBe(true);
  });

  it("is sent what changed meanwhile", async () => {
    const { receipts, client, comeBackTo } = await served();
    const second = rig(receipts);
    second.clusters.set("alpha", "1");
    second.endpoints.set("alpha", "2");
    second.inputsChanged();
    comeBackTo(second);
    await second.server.idle();
    expect(client.held(ENDPOINT_TYPE).get("alpha")).toBe(resource(ENDPOINT_TYPE, "alpha", "2").version);
  });

  it("with something else than it had is looked at, as is one of another kind", async () => {
    const { receipts, client, comeBackTo } = await served();
    const second = rig(receipts);
    second.clusters.set("alpha", "1");
    second.endpoints.set("alpha", "1");
    client.forget(ENDPOINT_TYPE, "alpha");
    comeBackTo(second);
    await second.server.idle();
    expect(client.held(ENDPOINT_TYPE).get("alpha")).toBe(resource(ENDPOINT_TYPE, "alpha", "1").version);
    const other = connect(second.server, { variant: "delta", node: NODE.replace("a.default", "b.default") }).client;
    other.subscribe(CLUSTER_TYPE);
    await second.server.idle();
    expect([...other.held(CLUSTER_TYPE).keys()]).toEqual(["alpha"]);
  });

  it("is not awaited for ever", async () => {
    const { receipts, comeBackTo } = await served();
    const second = rig(receipts);
    connect(second.server, { variant: "delta", node: NODE }).client.subscribe(CLUSTER_TYPE);
    await second.server.idle();
    for (let minute = 0; minute < 10; minute++) second.clock.advance(60_000);
    await second.server.idle();
    second.clusters.set("alpha", "1");
    second.endpoints.set("alpha", "1");
    const before = second.asked();
    comeBackTo(second);
    await second.server.idle();
    expect(second.asked(), "what it says it holds is compared with what there is").toBe(before + 2);
  });

  it("has no receipt of what could not be worked out, whatever it holds of before", async () => {
    const { first } = await served();
    expect(first.left()).toHaveLength(2);
    vi.spyOn(first.endpoints, "standing").mockReturnValue(undefined);
    vi.spyOn(first.endpoints, "prepare").mockImplementation(() => {
      throw new Error("no memory for it");
    });
    first.clusters.set("alpha", "1");
    first.endpoints.set("alpha", "2");
    first.server.push("a change");
    await first.server.idle();
    expect(first.left()).toHaveLength(1);
    expect(first.server.state()[0]?.types.map(({ inSync }) => inSync)).toEqual([true, false]);
    vi.restoreAllMocks();
    first.server.push("another");
    await first.server.idle();
    await first.server.idle();
    expect(first.left()).toHaveLength(2);
  });

  it("that refuses something leaves no receipt of that type", async () => {
    const only = rig();
    only.clusters.set("alpha", "1");
    const { client } = connect(only.server, { variant: "delta", node: NODE, judge: () => "no" });
    client.subscribe(CLUSTER_TYPE);
    await only.server.idle();
    expect(only.left()).toEqual([]);
  });
});

describe("a receipt", () => {
  it("is of one type, proxy, wish and what is held by it, however often it is asked for", () => {
    const receipts = new Confirmations(manualClock(), undefined, () => {});
    const names = createNameSets();
    const set = (version: string): Holding => ({
      base: { resources: new Map([["a", resource(CLUSTER_TYPE, "a", version)]]), failed: [] },
      unlike: new Map(),
    });
    const [view, held] = [testView(NODE), set("1")];
    const first: Receipted = { typeUrl: CLUSTER_TYPE, view, wanted: { wildcard: false, names: names.of(["a"]) }, holding: held };
    const others: readonly Receipted[] = [
      { ...first, typeUrl: ENDPOINT_TYPE },
      { ...first, view: testView("another") },
      { ...first, wanted: { ...first.wanted, wildcard: true } },
      { ...first, wanted: { ...first.wanted, names: names.of(["a", "b"]) } },
      { ...first, holding: set("2") },
    ];
    const all = [first, ...others];
    const expected = all.map((one) =>
      new Confirmations(manualClock(), undefined, () => {}).receiptOf({ ...one, holding: { ...one.holding } }),
    );
    expect(new Set(expected).size).toBe(all.length);
    for (const [index, other] of others.entries()) {
      const asked = [first, other, other, first].map((one) => receipts.receiptOf(one));
      expect(asked).toEqual([0, index + 1, index + 1, 0].map((at) => expected[at]));
    }
  });
});

describe("the version of a set", () => {
  it("is the same from resources and from names and versions, in any order", () => {
    holds(
      fc.property(fc.dictionary(fc.string(), fc.string()), fc.nat(), (contents, turn) => {
        const resources = Object.entries(contents).map(([name, content]) => resource(CLUSTER_TYPE, name, content));
        const set = { resources: new Map(resources.map((one) => [one.name, one])), failed: [] };
        const at = turn % Math.max(1, resources.length);
        const listed = [...resources.slice(at), ...resources.slice(0, at)].map(({ name, version }) => [name, version] as const);
        expect(listedVersions()(new Map(listed))).toBe(setVersion(set));
      }),
    );
  });
});
