import { describe, expect, it } from "vitest";
import { tally } from "../support/calls.ts";
import { shopService, weights } from "../support/shop.ts";
import { SERVICE_FILE, startShop } from "../support/shop-mesh.ts";
import { inStep } from "../support/sync.ts";
import { eventually } from "../support/wait.ts";

/** Lines about changes that reached a proxy. */
const changes = (log: string): readonly string[] =>
  log.split("\n").filter((line) => line.includes("change applied") && !line.includes("proxies=0"));

describe("the log", () => {
  it("has one line for every applied change: object, resources, proxies, time, rejections", async () => {
    const shop = await startShop({ http: weights(100, 0) });
    await inStep(shop.istiod, "client.shop");
    const before = changes(shop.istiod.log()).length;

    await shop.route(weights(0, 100), async () => (await tally(20, shop.target)).v2 === 20);
    const routed = await eventually("the change is logged", () => changes(shop.istiod.log())[before]);
    expect(routed).toMatch(/object=VirtualService\/shop\/cart\s+resources=rds:1\s+proxies=1\s+ms=\d+\s+rejections=0/);

    await shop.istiod.write(SERVICE_FILE, shopService({ ...shop.ports, v1: shop.ports.v2 }));
    const moved = await eventually("the change is logged", () => changes(shop.istiod.log())[before + 1]);
    expect(moved).toMatch(/object=ServiceEntry\/shop\/cart\s+resources=eds:2\s+proxies=1/);
    expect(changes(shop.istiod.log())).toHaveLength(before + 2);
  });

  it("says nothing was sent where a change concerns nobody", async () => {
    const shop = await startShop({ http: weights(100, 0) });
    await inStep(shop.istiod, "client.shop");
    const stranger = weights(100, 0);
    await shop.istiod.write(
      "conf/other.yaml",
      `apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: other, namespace: shop}\nspec:\n  hosts: [nobody.example.com]\n  gateways: [nowhere]\n  http:\n${stranger}\n`,
    );
    await eventually("the change is logged", () =>
      /object=VirtualService\/shop\/other\s+resources=none\s+proxies=0/.test(shop.istiod.log()),
    );
  });
});
