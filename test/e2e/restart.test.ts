import { describe, expect, it } from "vitest";
import { tally } from "../support/calls.ts";
import type { Proxy } from "../support/proxy.ts";
import { weights } from "../support/shop.ts";
import { startShop } from "../support/shop-mesh.ts";
import { inStep } from "../support/sync.ts";
import { keepCalling } from "../support/traffic.ts";
import { eventually } from "../support/wait.ts";

const SENT = ["cluster_manager.cds.update_success", "listener_manager.lds.update_success"];
const CHANGED = ["cluster_manager.cluster_added", "cluster_manager.cluster_modified", "cluster_manager.cluster_removed", "listener_manager.listener_added", "listener_manager.listener_modified", "listener_manager.listener_removed"];

/** How often Envoy was sent something and changed something. State of the world has no versions of single resources: there only change is telling. */
const updates = (proxy: Proxy, protocol: "delta" | "sotw"): Promise<readonly number[]> => Promise.all([...CHANGED, ...(protocol === "delta" ? SENT : [])].map(proxy.stat));

const ends = [
  { signal: "SIGKILL", status: null },
  { signal: "SIGTERM", status: 0 },
] as const;

describe.for(["delta", "sotw"] as const)("a control plane that ends and comes back (%s xDS)", (protocol) => {
  it.for(ends)("by $signal disturbs nobody, and changes nothing at proxies that have all", async ({ signal, status }) => {
    const shop = await startShop({ protocol, http: weights(90, 10) });
    await inStep(shop.istiod, "client.shop");
    const before = await updates(shop.proxy, protocol);
    const traffic = keepCalling(shop.target);
    await traffic.more(20);

    expect(await shop.istiod.stop(signal)).toBe(status);
    await eventually("Envoy notices", async () => (await shop.proxy.stat("control_plane.connected_state")) === 0);
    await traffic.more(50);
    await shop.istiod.start();
    await eventually("Envoy is connected again", async () => (await shop.proxy.stat("control_plane.connected_state")) === 1);
    await inStep(shop.istiod, "client.shop");
    await traffic.more(50);

    expect(await updates(shop.proxy, protocol)).toEqual(before);
    if (protocol === "delta") expect(await shop.istiod.metric("pilot_xds_pushes")).toBe(0);
    expect(await traffic.stop()).toEqual([]);

    await shop.route(weights(0, 100), async () => (await tally(20, shop.target)).v2 === 20);
    await shop.proxy.assertNothingRejected();
  });

  it("takes what changed while it was away, and only that", async () => {
    const shop = await startShop({ protocol, http: weights(100, 0) });
    await inStep(shop.istiod, "client.shop");
    const before = await updates(shop.proxy, protocol);
    await shop.istiod.stop();
    const changed = shop.route(weights(0, 100), async () => (await tally(20, shop.target)).v2 === 20);
    await shop.istiod.start();
    await changed;
    await inStep(shop.istiod, "client.shop");
    expect(await updates(shop.proxy, protocol)).toEqual(before);
    expect(await shop.istiod.metric("pilot_xds_pushes", 'type="rds"')).toBe(1);
    if (protocol === "delta") expect(await shop.istiod.metric("pilot_xds_pushes")).toBe(1);
  });
});
