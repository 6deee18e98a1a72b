import { describe, expect, it } from "vitest";
import { call, tally } from "../support/calls.ts";
import { rule, shopRoutes, weights } from "../support/shop.ts";
import { ROUTES_FILE, startShop } from "../support/shop-mesh.ts";
import { eventually } from "../support/wait.ts";

const variants = (["sidecar", "gateway"] as const).flatMap((place) =>
  (["delta", "sotw"] as const).map((protocol) => ({ place, protocol })),
);

describe.for(variants)("HTTP through a $place over $protocol xDS", ({ place, protocol }) => {
  it("splits requests by weight, and the split follows the file", async () => {
    const shop = await startShop({ place, protocol, http: weights(90, 10) });
    // Of 400 requests 40 are meant for the lesser version, with a standard deviation of 6: the limits are more than five of them away.
    const before = await tally(400, shop.target);
    expect(before.v1).toBeGreaterThan(310);
    expect(before.v2).toBeGreaterThan(5);
    expect([shop.v1.take(), shop.v2.take()]).toEqual([before.v1, before.v2]);

    await shop.route(weights(10, 90), async () => ((await tally(40, shop.target)).v2 ?? 0) > 20);
    const after = await tally(400, shop.target);
    expect(after.v1).toBeGreaterThan(5);
    expect(after.v2).toBeGreaterThan(310);
    await shop.proxy.assertNothingRejected();
  });

  it("matches, rewrites and redirects", async () => {
    const rewritten = [
      "match: [{uri: {prefix: /old/}}]",
      "rewrite: {uri: /new/, authority: renamed.example.com}",
      "headers: {request: {set: {x-added: by-mesh}}}",
    ];
    const redirected = "\n  - match: [{uri: {exact: /away}}]\n    redirect: {uri: /there, authority: example.org, redirectCode: 302}";
    const { target, proxy, v2 } = await startShop({
      place,
      protocol,
      http: [rule("v2", "match: [{headers: {x-user: {exact: ann}}}]"), rule("v2", ...rewritten), redirected, rule("v1")].join(""),
    });
    expect((await call({ ...target, headers: { "x-user": "ann" } })).by).toBe("v2");
    expect((await call({ ...target, headers: { "x-user": "bob" } })).by).toBe("v1");

    expect((await call({ ...target, path: "/old/cart?id=7" })).by).toBe("v2");
    expect(v2.hits.at(-1)).toMatchObject({ url: "/new/cart?id=7", headers: { host: "renamed.example.com", "x-added": "by-mesh" } });

    const away = await call({ ...target, path: "/away" });
    expect([away.status, away.headers.location]).toEqual([302, "http://example.org/there"]);
    await proxy.assertNothingRejected();
  });

  it("goes back to the default when the rule is removed, and takes it again when it is back", async () => {
    const http = rule("v1");
    const { target, istiod, proxy } = await startShop({ place, protocol, http });
    expect(await tally(20, target)).toEqual({ v1: 20 });

    await istiod.remove(ROUTES_FILE);
    if (place === "gateway") await eventually("the gateway knows no such host", async () => (await call(target)).status === 404);
    else
      await eventually(
        "both versions answer",
        async () =>
          Object.keys(await tally(20, target))
            .sort()
            .join() === "v1,v2",
      );

    await istiod.write(ROUTES_FILE, shopRoutes(http));
    await eventually("only the first version answers", async () => (await tally(20, target)).v1 === 20);
    await proxy.assertNothingRejected();
  });
});
