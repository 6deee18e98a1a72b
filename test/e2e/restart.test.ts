import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { call, tally } from "../support/calls.ts";
import { startIstiod } from "../support/istiod.ts";
import { listening, type RunningProxy, startProxy } from "../support/proxy.ts";
import { type Relay, startRelay } from "../support/relay.ts";
import { shopRoutes, weights } from "../support/shop.ts";
import { ROUTES_FILE, startShop } from "../support/shop-mesh.ts";
import { assertSentNothing, inStep, updatesOf } from "../support/sync.ts";
import { keepCalling } from "../support/traffic.ts";
import { eventually } from "../support/wait.ts";

const CHANGED = [
  "cluster_manager.cluster_added",
  "cluster_manager.cluster_modified",
  "cluster_manager.cluster_removed",
  "listener_manager.listener_added",
  "listener_manager.listener_modified",
  "listener_manager.listener_removed",
];

/** How often Envoy changed something. */
const changes = (proxy: RunningProxy): Promise<readonly number[]> => Promise.all(CHANGED.map(proxy.stat));

const ends = [
  { signal: "SIGKILL", status: null },
  { signal: "SIGTERM", status: 0 },
] as const;

describe.for(["delta", "sotw"] as const)("a control plane that ends and comes back (%s xDS)", (protocol) => {
  it.for(ends)("by $signal disturbs nobody, and changes nothing at proxies that have all", async ({ signal, status }) => {
    const shop = await startShop({ protocol, http: weights(90, 10) });
    await inStep(shop.istiod, "client.shop");
    const before = { changes: await changes(shop.proxy), updates: await updatesOf(shop.proxy) };
    const traffic = keepCalling(shop.target);
    await traffic.more(20);

    expect(await shop.istiod.stop(signal)).toBe(status);
    await eventually("Envoy notices", async () => (await shop.proxy.stat("control_plane.connected_state")) === 0);
    await traffic.more(50);
    await shop.istiod.start();
    await eventually("Envoy is connected again", async () => (await shop.proxy.stat("control_plane.connected_state")) === 1);
    await inStep(shop.istiod, "client.shop");
    await traffic.more(50);

    expect(await changes(shop.proxy)).toEqual(before.changes);
    // State of the world has no versions of single resources: there only change is telling.
    if (protocol === "delta") await assertSentNothing(shop.proxy, shop.istiod, before.updates);
    if (protocol === "delta") expect(await shop.istiod.metric("pilot_xds_pushes")).toBe(0);
    expect(await traffic.stop()).toEqual([]);

    await shop.route(weights(0, 100), async () => (await tally(20, shop.target)).v2 === 20);
    await shop.proxy.assertNothingRejected();
  });

  it("takes what changed while it was away, and only that", async () => {
    const shop = await startShop({ protocol, http: weights(100, 0) });
    await inStep(shop.istiod, "client.shop");
    const before = { changes: await changes(shop.proxy), updates: await updatesOf(shop.proxy) };
    await shop.istiod.stop();
    await shop.istiod.write(ROUTES_FILE, shopRoutes(weights(0, 100)));
    await shop.istiod.start();
    await eventually("the change is in force", async () => (await tally(20, shop.target)).v2 === 20);
    await inStep(shop.istiod, "client.shop");
    expect(await changes(shop.proxy)).toEqual(before.changes);
    // State of the world has no versions of single resources: there only change is telling.
    if (protocol === "delta") await assertSentNothing(shop.proxy, shop.istiod, before.updates);
    expect(await shop.istiod.metric("pilot_xds_pushes", 'type="rds"')).toBe(1);
    if (protocol === "delta") expect(await shop.istiod.metric("pilot_xds_pushes")).toBe(1);
  });
});

describe("what proxies were offered, kept on disk,", () => {
  const kept = async (shop: Awaited<ReturnType<typeof startShop>>): Promise<void> => {
    await inStep(shop.istiod, "client.shop");
    await eventually(
      "receipts are written",
      async () => (await readFile(join(shop.istiod.home, "var/lib/istio/receipts"), "utf8")).split("\n").length > 4,
    );
  };

  it("spares working it out after a restart, until there is quiet", async () => {
    const shop = await startShop({ http: weights(100, 0) });
    await kept(shop);
    await shop.istiod.stop("SIGKILL");
    await shop.istiod.start();
    await inStep(shop.istiod, "client.shop");
    expect(await shop.istiod.metric("istiod_xds_confirmed_total")).toBeGreaterThanOrEqual(4);
    await eventually("all is worked out", async () => (await shop.istiod.metric("istiod_xds_classes", 'type="rds"')) === 1);
    expect(await shop.istiod.metric("pilot_xds_pushes")).toBe(0);
    await shop.route(weights(0, 100), async () => (await tally(20, shop.target)).v2 === 20);
  });

  it("counts for nothing once a file has changed", async () => {
    const shop = await startShop({ http: weights(100, 0) });
    await kept(shop);
    await shop.istiod.stop("SIGKILL");
    await shop.istiod.write(ROUTES_FILE, shopRoutes(weights(0, 100)));
    await shop.istiod.start();
    await eventually("the change is in force", async () => (await tally(20, shop.target)).v2 === 20);
    expect(await shop.istiod.metric("istiod_xds_confirmed_total")).toBe(0);
    expect(await shop.istiod.metric("pilot_xds_pushes", 'type="rds"')).toBe(1);
  });
});

describe("a proxy", () => {
  it("that starts before its control plane is configured as soon as that is there", async () => {
    const shop = await startShop({ http: weights(0, 100) });
    await shop.istiod.stop();
    await shop.proxy.stop();
    const starting = startProxy({ xdsPort: shop.istiod.grpcPort, name: "late", address: "127.0.0.1" });
    await shop.istiod.start();
    await starting;
    await listening(shop.target.port);
    expect(await tally(10, shop.target)).toEqual({ v2: 10 });
  });

  it("that moves to another replica with the same configuration is sent nothing", async () => {
    let relay: Relay | undefined;
    const shop = await startShop({
      http: weights(90, 10),
      xdsPort: async (istiod) => {
        relay = await startRelay({ to: istiod.grpcPort });
        return relay.port;
      },
    });
    await inStep(shop.istiod, "client.shop");
    const replica = await startIstiod({ files: await readFiles(join(shop.istiod.home, "etc/istio")) });
    relay?.pointAt(replica.grpcPort);
    await inStep(replica, "client.shop");
    expect(await replica.metric("pilot_xds_pushes")).toBe(0);
    expect((await call(shop.target)).status).toBe(200);
  });
});

/** All files below a directory, by their path in it. */
async function readFiles(dir: string): Promise<Readonly<Record<string, string>>> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(
    await Promise.all(paths.map(async (path): Promise<[string, string]> => [relative(dir, path), await readFile(path, "utf8")])),
  );
}
