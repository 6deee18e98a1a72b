import { assert, describe, it } from "vitest";
import { streamOf } from "../debug/stream-fixture.ts";
import { actingPages } from "./acting-pages.ts";

function pagesWith(profile: Buffer | undefined = Buffer.from("profile")) {
  const cut: string[] = [];
  const looks: string[] = [];
  const routes = actingPages({
    xds: {
      state: () => [streamOf([], { id: "7" }), streamOf([], { id: "8" }), streamOf([], { id: "9", node: "sidecar~10.0.0.2~other.shop~x" })],
      disconnect: (id) => cut.push(id) > 0,
    },
    profiler: {
      take: async (what, seconds) => {
        looks.push(`${what} ${seconds}`);
        return profile;
      },
    },
  });
  const ask = async (path: string) => {
    const url = new URL(path, "http://host");
    return routes.find((route) => route.path === url.pathname)?.answer(url.searchParams);
  };
  return { routes, cut, looks, ask };
}

describe("actingPages", () => {
  it("are nobody's who may only look", () => {
    for (const { open, acts, method, within } of pagesWith().routes)
      assert.isTrue(!open && within === undefined && (acts === true || method === "POST"));
  });

  it("cut all connections of the proxy that is named, and of no other", async () => {
    const { ask, cut } = pagesWith();
    assert.deepEqual(await ask("/debug/force_disconnect?proxyID=web.shop"), { status: 200, body: { disconnected: true } });
    assert.deepEqual(cut, ["7", "8"]);
    assert.equal((await ask("/debug/force_disconnect?proxyID=gone.shop"))?.status, 404);
    assert.equal((await ask("/debug/force_disconnect"))?.status, 400);
    assert.deepEqual(cut, ["7", "8"]);
  });

  it("take profiles of a bounded time", async () => {
    const { ask, looks } = pagesWith();
    for (const query of ["", "?seconds=2", "?seconds=120"]) assert.equal((await ask(`/debug/pprof/profile${query}`))?.status, 200);
    assert.equal((await ask("/debug/pprof/heap"))?.contentType, "application/octet-stream");
    assert.deepEqual(looks, ["cpu 30", "cpu 2", "cpu 120", "heap 10"]);
    for (const seconds of ["0", "-1", "121", "x", "Infinity"])
      assert.equal((await ask(`/debug/pprof/profile?seconds=${seconds}`))?.status, 400, seconds);
    assert.equal(looks.length, 4);
  });

  it("say that another profile is being taken", async () => {
    const routes = actingPages({ xds: { state: () => [], disconnect: () => false }, profiler: { take: async () => undefined } });
    for (const { path, answer } of routes.slice(1)) assert.equal((await answer(new URLSearchParams())).status, 409, path);
  });
});
