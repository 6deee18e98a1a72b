import { describe, expect, it } from "vitest";
import type { ProxyView } from "../model/proxy.ts";
import { CLUSTER_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "../wire/type-urls.ts";
import type { StreamProgress } from "../xds/server.ts";
import type { TypeState } from "../xds/state.ts";
import { type ObjectReaches, objectReaches } from "./object-reaches.ts";

const type = (typeUrl: string, part: Partial<TypeState> = {}): TypeState => ({
  typeUrl,
  wildcard: true,
  names: 0,
  held: 0,
  inSync: true,
  sentNonce: "1",
  sentAt: 1,
  ackedNonce: "1",
  ackedAt: 1,
  nacks: 0,
  lastError: undefined,
  lastNackAt: undefined,
  rejected: [],
  failed: [],
  ...part,
});

const SERVED = [type(CLUSTER_TYPE), type(LISTENER_TYPE)];
const WAITING = { inSync: false, ackedNonce: undefined, ackedAt: undefined };

const stream = (name: string, upTo: number, types: readonly TypeState[] = SERVED): StreamProgress => ({
  upTo,
  state: {
    id: `${name}${upTo}`,
    node: `sidecar~10.0.0.1~${name}.shop~shop.svc.cluster.local`,
    variant: "delta",
    peer: "10.0.0.1:1",
    connectedAt: 0,
    view: { name } as ProxyView,
    types,
  },
});

const reaches = (progress: readonly StreamProgress[], pushes: Readonly<Record<string, number>> = {}): ObjectReaches =>
  objectReaches({
    progress,
    pushes: new Map(Object.entries(pushes)),
    providers: [{ typeUrl: LISTENER_TYPE, provenance: (_view, name) => (name === "bad" ? ["Gateway/shop/a", "Service/shop/b"] : []) }],
  });

describe("how far an object has come", () => {
  it("counts proxies that have acknowledged the push that brought it", () => {
    const now = reaches([stream("a", 4), stream("b", 5), stream("c", 6)], {
      "Gateway/shop/a": 5,
      "Gateway/shop/b": 7,
      "Gateway/shop/c": 4,
    });
    expect(now.of("Gateway/shop/a")).toEqual({ proxies: 3, acknowledged: 2, refusals: [] });
    expect(now.of("Gateway/shop/b").acknowledged).toBe(0);
    expect(now.of("Gateway/shop/c").acknowledged).toBe(3);
    expect(now.of("Gateway/shop/long-there").acknowledged).toBe(3);
    expect([now.isEverywhere("Gateway/shop/a", 5), now.isEverywhere("Gateway/shop/c", 4)]).toEqual([false, true]);
  });

  it("does not count one that has never been served all it asked for, whatever was pushed before", () => {
    const joining = [type(CLUSTER_TYPE), type(LISTENER_TYPE), type(ROUTE_TYPE, WAITING)];
    expect(reaches([stream("a", 9), stream("b", 9, joining)]).of("Gateway/shop/a")).toMatchObject({ proxies: 2, acknowledged: 1 });
  });

  it("takes all streams of a proxy together, and one who does not ask for listeners for none", () => {
    expect(reaches([stream("a", 9), stream("a", 3, [type(CLUSTER_TYPE)])], { k: 5 }).of("k")).toMatchObject({
      proxies: 1,
      acknowledged: 0,
    });
    expect(reaches([stream("a", 9, [type(CLUSTER_TYPE)])]).proxies).toBe(0);
  });

  it("tells who refuses what is made from it", () => {
    const refused = (fallback: string | undefined) => [
      type(LISTENER_TYPE, { rejected: [{ name: "bad", version: "1", error: "no", fallback }] }),
    ];
    const hard = reaches([stream("b", 9, refused(undefined)), stream("a", 9, refused(undefined)), stream("c", 9)]);
    expect(hard.of("Gateway/shop/a")).toEqual({
      proxies: 3,
      acknowledged: 1,
      refusals: ["a.shop", "b.shop"].map((proxy) => ({ proxy, resource: "LDS bad", error: "no" })),
    });
    expect(hard.of("Gateway/shop/other")).toMatchObject({ acknowledged: 3, refusals: [] });
    expect(hard.isEverywhere("Gateway/shop/a", 1)).toBe(false);

    // A proxy that goes on with what it had before has all of that: what came since is refused.
    const soft = reaches([stream("a", 9, refused("0"))], { "Gateway/shop/a": 9 });
    expect(soft.of("Gateway/shop/a").refusals.length).toBe(1);
    expect(soft.of("Service/shop/b").refusals).toEqual([]);
  });
});
