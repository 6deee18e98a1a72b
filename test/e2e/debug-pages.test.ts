import { describe, expect, it } from "vitest";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { readProfile } from "../support/pprof.ts";
import { startProxy } from "../support/proxy.ts";
import { inStep } from "../support/sync.ts";
import { eventually } from "../support/wait.ts";

const CONF = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: web, namespace: shop}
spec: {hosts: [web.test], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 127.0.0.42}]}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: web, namespace: shop}
spec: {action: ALLOW, rules: [{}]}
`;

async function meshWithProxy(): Promise<Istiod> {
  const istiod = await startIstiod({ files: { "conf/shop.yaml": CONF } });
  await startProxy({ xdsPort: istiod.grpcPort, name: "web", address: "127.0.0.42", namespace: "shop" });
  await inStep(istiod, "web.shop");
  return istiod;
}

const json = async (istiod: Istiod, path: string): Promise<unknown> => {
  const answer = await istiod.debug(path);
  expect([path, answer.status]).toEqual([path, 200]);
  return answer.json();
};

/** The id of the connection of the one proxy there is. */
const connectionOf = async (istiod: Istiod): Promise<string | undefined> =>
  ((await json(istiod, "/debug/connections")) as { clients: readonly { connectionId: string }[] }).clients[0]?.connectionId;

describe("debug pages with a real proxy", () => {
  it("all answer, and tell of it", async () => {
    const istiod = await meshWithProxy();
    const names = (await json(istiod, "/debug/list")) as readonly string[];
    for (const name of names.filter((one) => one !== "inject")) await json(istiod, `/debug/${name}?proxyID=web.shop`);
    const proxy = "?proxyID=web.shop";
    expect(await json(istiod, `/debug/cdsz${proxy}`)).toMatchObject({
      configs: expect.arrayContaining([expect.objectContaining({ name: "outbound|80||web.test" })]),
    });
    expect(await json(istiod, `/debug/ldsz${proxy}`)).toMatchObject({
      configs: expect.arrayContaining([expect.objectContaining({ name: "127.0.0.1_80" })]),
    });
    expect(await json(istiod, `/debug/edsz${proxy}`)).toMatchObject({ configs: [{ clusterName: "outbound|80||web.test" }] });
    expect(await json(istiod, "/debug/instancesz")).toMatchObject({
      "web.shop": [{ Service: { hostname: "web.test" }, Port: { port: 80 } }],
    });
    expect(await json(istiod, `/debug/sidecarz${proxy}`)).toMatchObject({ services: [{ hostname: "web.test", namespace: "shop" }] });
    expect(await json(istiod, `/debug/authorizationz${proxy}`)).toMatchObject({
      authorization_policies: { namespace_to_policies: { shop: [{ name: "web" }] } },
    });
    await istiod.write("conf/shop.yaml", CONF.replace("127.0.0.42", "127.0.0.43"));
    await eventually("the change is through", async () => {
      const status = (await json(istiod, "/debug/push_status")) as {
        last?: { reason: string; proxies: number };
        behind: readonly unknown[];
      };
      return status.last?.reason === "ServiceEntry/shop/web" && status.last.proxies === 1 && status.behind.length === 0;
    });
  });

  it("force_disconnect cuts the connection, once it is asked for with POST, and the proxy comes back", async () => {
    const istiod = await meshWithProxy();
    const before = await connectionOf(istiod);
    const path = "/debug/force_disconnect?proxyID=web.shop";
    expect((await istiod.debug(path)).status).toBe(405);
    expect(await connectionOf(istiod)).toBe(before);
    const answer = await istiod.debug(path, { method: "POST" });
    expect([answer.status, await answer.json()]).toEqual([200, { disconnected: true }]);
    await eventually("it is back", async () => {
      const now = await connectionOf(istiod);
      return now !== undefined && now !== before;
    });
  });

  it("pprof takes one profile at a time of the program as it is started, from a snapshot", async () => {
    const istiod = await meshWithProxy();
    const both = await Promise.all(["profile", "heap"].map((name) => istiod.debug(`/debug/pprof/${name}?seconds=2`)));
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
    const profile = await eventually("a profile is taken while a page is made: it looks a hundred times a second", async () => {
      const taken = istiod.debug("/debug/pprof/profile?seconds=2");
      let isDone = false;
      void taken.finally(() => {
        isDone = true;
      });
      while (!isDone) await json(istiod, "/debug/config_dump?proxyID=web.shop");
      const read = readProfile(Buffer.from(await (await taken).arrayBuffer()));
      return read.samples.some(({ stack }) => stack.includes("dumpPage")) && read;
    });
    expect(profile.types).toEqual(["samples in count", "cpu in nanoseconds"]);
    const heap = readProfile(Buffer.from(await (await istiod.debug("/debug/pprof/heap?seconds=0.1")).arrayBuffer()));
    expect(heap.types).toEqual(["inuse_space in bytes"]);
  });
});
