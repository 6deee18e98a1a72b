import { describe, expect, it } from "vitest";
import { call } from "../support/calls.ts";
import { rule } from "../support/shop.ts";
import { startShop } from "../support/shop-mesh.ts";
import { eventually } from "../support/wait.ts";

describe("what clients see when servers fail", () => {
  it("gives up after the time-out with 504", async () => {
    const shop = await startShop({ http: rule("v1", "timeout: 3s"), v1: { hangs: true } });
    expect((await call(shop.target)).status).toBe(504);
    expect(shop.v1.hits).toHaveLength(1);
  });

  it("retries until a server answers well", async () => {
    const answers = [503, 503, 200];
    const shop = await startShop({
      http: rule("v1", "retries: {attempts: 3, retryOn: 5xx}"),
      v1: { status: () => answers.shift() ?? 200 },
    });
    expect((await call(shop.target)).status).toBe(200);
    expect(shop.v1.hits).toHaveLength(3);
  });

  it("does not retry what the rule says not to", async () => {
    const shop = await startShop({ http: rule("v1", "retries: {attempts: 0}"), v1: { status: () => 503 } });
    expect((await call(shop.target)).status).toBe(503);
    expect(shop.v1.hits).toHaveLength(1);
  });

  it("delays and aborts where a fault is injected", async () => {
    const abort = rule("v1", "match: [{uri: {prefix: /abort}}]", "fault: {abort: {httpStatus: 418, percentage: {value: 100}}}");
    const delay = rule("v1", "match: [{uri: {prefix: /delay}}]", "fault: {delay: {fixedDelay: 300ms, percentage: {value: 100}}}");
    const shop = await startShop({ http: abort + delay + rule("v1") });
    expect((await call({ ...shop.target, path: "/abort" })).status).toBe(418);
    expect(shop.v1.hits).toHaveLength(0);
    const before = performance.now();
    expect((await call({ ...shop.target, path: "/delay" })).by).toBe("v1");
    expect(performance.now() - before).toBeGreaterThan(290);
  });

  it("mirrors to the other version without the client noticing", async () => {
    const mirror = "mirror: {host: cart.shop.svc.cluster.local, subset: v2}";
    const shop = await startShop({ http: rule("v1", mirror) });
    expect((await call({ ...shop.target, path: "/both" })).by).toBe("v1");
    await eventually("the copy arrives", () => shop.v2.hits.some(({ url }) => url === "/both"));
  });
});

describe("hosts that no service has", () => {
  const stranger = "nobody.example.com";

  it("are refused with 502 where only the registry may be called", async () => {
    const shop = await startShop({ istiod: { files: { "mesh.yaml": "outboundTrafficPolicy: {mode: REGISTRY_ONLY}\n" } } });
    expect((await call(shop.target)).status).toBe(200);
    expect((await call({ ...shop.target, host: stranger })).status).toBe(502);
    expect(shop.v1.hits.length + shop.v2.hits.length).toBe(1);
  });

  it("are refused at a gateway with 404", async () => {
    const shop = await startShop({ place: "gateway", http: rule("v1") });
    expect((await call(shop.target)).status).toBe(200);
    expect((await call({ ...shop.target, host: stranger })).status).toBe(404);
  });
});
