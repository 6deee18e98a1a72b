import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { DiffReport } from "../../src/cli/diff/diff-report.ts";
import { proxyResources } from "../../src/cli/proxy-config/dumped-resources.ts";
import type { ConfigDump } from "../../src/debug/api-types.ts";
import { istioctl } from "../cli/cli-host.ts";
import { tally } from "../support/calls.ts";
import type { Istiod } from "../support/istiod.ts";
import { shopRoutes, shopService, weights } from "../support/shop.ts";
import { ROUTES_FILE, SERVICE_FILE, startShop } from "../support/shop-mesh.ts";
import { inStep } from "../support/sync.ts";
import { eventually } from "../support/wait.ts";

const TYPES = { clusters: "cds", listeners: "lds", routes: "rds", endpoints: "eds" } as const;

/** Versions of what a proxy has acknowledged. */
async function held(istiod: Istiod, proxy: string): Promise<ReadonlyMap<string, string>> {
  const dump = (await (await istiod.debug(`/debug/config_dump?proxyID=${proxy}`)).json()) as ConfigDump;
  const resources = proxyResources(dump);
  return new Map(
    (["clusters", "listeners", "routes", "endpoints"] as const).flatMap((part) =>
      resources[part].map(({ name, version }): [string, string] => [`${TYPES[part]} ${name}`, version]),
    ),
  );
}

function difference(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): readonly string[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .flatMap((key) => {
      const [old, now] = [before.get(key), after.get(key)];
      if (old === now) return [];
      return [`${key} ${old === undefined ? "added" : now === undefined ? "removed" : "changed"}`];
    })
    .sort();
}

describe("istioctl diff beside a running control plane", () => {
  it("foretells exactly what the connected Envoy is then sent, and changes nothing itself", async () => {
    const shop = await startShop({ http: weights(100, 0) });
    const { istiod } = shop;
    await inStep(istiod, "client.shop");
    const before = await held(istiod, "client.shop");
    const service = shopService(shop.ports, "{connectionPool: {tcp: {maxConnections: 7}}}").replace("{name: v2,", "{name: second,");
    const routes = shopRoutes(weights(0, 100).replaceAll("subset: v2", "subset: second"));
    const change = join(istiod.home, "new.yaml");
    await writeFile(change, `${service}---${routes}`);

    const env = { ISTIO_HOME: istiod.home, ISTIOD_DEBUG_ADDRESS: `127.0.0.1:${istiod.httpPort}` };
    const { status, out, err } = await istioctl(["diff", "-f", change, "--connected", "-o", "json"], { env, cwd: istiod.home });
    expect({ status, err }).toEqual({ status: 1, err: "" });
    const report = JSON.parse(out) as DiffReport;
    expect(report).toMatchObject({ proxies: 1, touched: 1, classes: [{ proxies: [{ name: "client", namespace: "shop" }] }] });
    expect(difference(before, await held(istiod, "client.shop"))).toEqual([]);

    await istiod.write(SERVICE_FILE, service);
    await istiod.write(ROUTES_FILE, routes);
    await eventually("the second version answers", async () => (await tally(20, shop.target)).v2 === 20);
    const foretold = report.classes.flatMap(({ resources }) => resources.map(({ type, name, change: what }) => `${type} ${name} ${what}`));
    await eventually("the proxy has what was foretold", async () => {
      const real = difference(before, await held(istiod, "client.shop"));
      expect(real).toEqual([...foretold].sort());
      return true;
    });
    await shop.proxy.assertNothingRejected();
    const again = await istioctl(["diff", "-f", change, "--connected"], { env, cwd: istiod.home });
    expect([again.status, again.out]).toEqual([0, "no differences: 1 proxy would be configured as before\n"]);
  });
});
