import { describe, expect, it } from "vitest";
import { call } from "../support/calls.ts";
import { freePort } from "../support/ports.ts";
import { rule, SHOP_HOST } from "../support/shop.ts";
import { startShop } from "../support/shop-mesh.ts";
import { syncz } from "../support/sync.ts";
import { eventually } from "../support/wait.ts";

const FILE = "conf/elsewhere.yaml";

/** A gateway with two servers, of which the second binds an address: one that this machine does not have makes a listener Envoy refuses. */
const twoServers = (port: number, bind: string): string => `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: elsewhere, namespace: shop}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: ${port}, name: http-bound, protocol: HTTP}, bind: ${bind}, hosts: ["*"]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: elsewhere, namespace: shop}
spec:
  hosts: [bound.example.com]
  gateways: [elsewhere]
  http: [{route: [{destination: {host: ${SHOP_HOST}, subset: v2}}]}]
`;

describe.for(["delta", "sotw"] as const)("configuration that Envoy refuses (%s xDS)", (protocol) => {
  it("costs nothing else, is counted, logged with its origin and shown, and heals when the file is corrected", async () => {
    const shop = await startShop({ place: "gateway", protocol, http: rule("v1") });
    const { istiod, target } = shop;
    const bound = await freePort();
    await istiod.write(FILE, twoServers(bound, "192.0.2.77"));
    await eventually("the refusal is counted", async () => (await istiod.metric("pilot_total_xds_rejects", 'type="lds"')) > 0);
    expect(await istiod.metric("pilot_xds_lds_reject")).toBeGreaterThan(0);
    await eventually("the log names object, file and line", () =>
      /rejected configuration.*Gateway\/shop\/elsewhere.*elsewhere\.yaml:2/.test(istiod.log()),
    );
    const lds = await eventually("it is shown", async () => {
      const edge = (await syncz(istiod)).find(({ proxy }) => proxy === "edge.shop");
      return edge?.types.find(({ type, state }) => type === "LDS" && state === "NACKED");
    });
    expect(lds.rejected).toMatchObject([{ name: `192.0.2.77_${bound}`, error: expect.stringContaining("192.0.2.77") }]);

    // Others are applied, also those that come in the same response or later.
    expect((await call(target)).by).toBe("v1");
    await shop.route(rule("v2"), async () => (await call(target)).by === "v2");

    await istiod.write(FILE, twoServers(bound, "127.0.0.9"));
    await eventually(
      "the corrected listener serves",
      async () => (await call({ address: "127.0.0.9", port: bound, host: "bound.example.com" })).by === "v2",
    );
    await eventually("nothing is shown as refused", async () => {
      const edge = (await syncz(istiod)).find(({ proxy }) => proxy === "edge.shop");
      return edge?.types.some(({ type, state, rejected }) => type === "LDS" && state === "SYNCED" && rejected.length === 0);
    });
  });

  it("does not hide what is good in the same response", async () => {
    const files = { [FILE]: twoServers(await freePort(), "192.0.2.77") };
    const shop = await startShop({ place: "gateway", protocol, http: rule("v1"), istiod: { files } });
    expect((await call(shop.target)).by).toBe("v1");
    const { istiod } = shop;
    await eventually("the refusal is counted", async () => (await istiod.metric("pilot_total_xds_rejects", 'type="lds"')) > 0);
    await shop.proxy.stop();
    await eventually("what is counted by proxy goes with it", async () => (await istiod.metric("pilot_xds_lds_reject")) === 0);
    expect(await istiod.metric("pilot_total_xds_rejects", 'type="lds"')).toBeGreaterThan(0);
  });
});
