import { describe, expect, it } from "vitest";
import type { ProblemRecord } from "../../src/debug/api-types.ts";
import { tally } from "../support/calls.ts";
import type { Istiod } from "../support/istiod.ts";
import { rule, shopRoutes, weights } from "../support/shop.ts";
import { ROUTES_FILE, type ShopMesh, startShop } from "../support/shop-mesh.ts";
import { eventually } from "../support/wait.ts";

/** Good YAML with a field that does not exist, in line 8 of the file. */
const BROKEN_ROUTES = shopRoutes(rule("v2")).replace("  http:\n", "  htttp:\n");
const BROKEN_LINE = 1 + BROKEN_ROUTES.split("\n").findIndex((line) => line.startsWith("  htttp:"));

const problems = async (istiod: Istiod): Promise<readonly ProblemRecord[]> =>
  (await (await istiod.debug("/debug/problems")).json()) as readonly ProblemRecord[];

/** Writes the broken routes and waits until istiod says so. */
async function breakRoutes({ istiod }: ShopMesh): Promise<ProblemRecord> {
  await istiod.write(ROUTES_FILE, BROKEN_ROUTES);
  return eventually("the problem is shown", async () => (await problems(istiod))[0]);
}

const onlyV1 = async ({ target }: ShopMesh): Promise<void> => expect(await tally(40, target)).toEqual({ v1: 40 });

describe("a broken edit", () => {
  it("leaves the last good routes in force, names file and line, and is healed by the next good one", async () => {
    const shop = await startShop({ http: rule("v1") });
    await onlyV1(shop);
    const problem = await breakRoutes(shop);
    expect(problem).toMatchObject({
      level: "error",
      object: { kind: "VirtualService", namespace: "shop", name: "cart" },
      line: BROKEN_LINE,
    });
    expect(problem.file).toMatch(/routes\.yaml$/);
    await eventually("the log names the place", () => shop.istiod.log().includes(`routes.yaml:${BROKEN_LINE}`));
    expect(await shop.istiod.metric("pilot_total_rejected_configs")).toBe(1);
    await onlyV1(shop);

    await shop.route(rule("v2"), async () => (await tally(20, shop.target)).v2 === 20);
    expect(await problems(shop.istiod)).toEqual([]);
  });

  it("costs the other documents of its file nothing", async () => {
    const shop = await startShop({ http: rule("v1") });
    const other = shopRoutes(rule("v2"))
      .replaceAll("cart.shop.svc.cluster.local]", "other.example.com]")
      .replace("name: cart,", "name: other,")
      .replace("[mesh, shop/edge]", "[mesh]");
    await shop.istiod.write(ROUTES_FILE, `${BROKEN_ROUTES}\n---\n${other}`);
    await eventually("the good document is in force", async () =>
      JSON.stringify(await (await shop.istiod.debug("/debug/configz?type=VirtualService")).json()).includes("other.example.com"),
    );
    await onlyV1(shop);
  });

  it("outlives a restart: what was in force before is in force again", async () => {
    const shop = await startShop({ http: rule("v1") });
    await breakRoutes(shop);
    await shop.istiod.stop();
    await shop.istiod.start();
    expect((await problems(shop.istiod)).map(({ line }) => line)).toEqual([BROKEN_LINE]);
    await eventually("Envoy is connected again", async () => (await shop.proxy.stat("control_plane.connected_state")) === 1);
    await onlyV1(shop);
    await shop.route(weights(0, 100), async () => (await tally(20, shop.target)).v2 === 20);
  });

  it("ends with its file: what is deleted is gone, broken or not", async () => {
    const shop = await startShop({ http: rule("v1") });
    await breakRoutes(shop);
    await shop.istiod.remove(ROUTES_FILE);
    await eventually("both versions answer", async () => Object.keys(await tally(20, shop.target)).length === 2);
    expect(await problems(shop.istiod)).toEqual([]);
  });
});
