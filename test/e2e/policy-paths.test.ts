import { describe, expect, it } from "vitest";
import { guardedGateway, policy, statusOf } from "../support/policies.ts";
import { SHOP_HOST } from "../support/shop.ts";

/** MeshConfig pathNormalization, from the least to the most that is done to a path before policies, routes and servers see it. */
const MODES = ["NONE", "BASE", "MERGE_SLASHES", "DECODE_AND_MERGE_SLASHES"] as const;

/** `d`enied by the policy, `s`erved, or `r`efused by Envoy as no good path: one letter for each mode. */
const PATHS: readonly [path: string, outcomes: string][] = [
  ["/admin", "dddd"],
  ["/admin/", "dddd"],
  ["/admin/x", "dddd"],
  ["/admin?a=b", "dddd"],
  ["/admin//x", "dddd"],
  // Dots, also where they are written in percent, and backslashes
  ["/./admin", "sddd"],
  ["/x/../admin", "sddd"],
  ["/x/%2e%2e/admin", "sddd"],
  ["/x/..\\admin", "sddd"],
  ["\\admin", "rrrr"],
  // Letters in percent
  ["/%61dmin", "sddd"],
  // Slashes too many
  ["//admin", "ssdd"],
  ["///admin//x", "ssdd"],
  ["/x//../admin", "ssss"],
  // Slashes in percent
  ["/admin%2Fx", "sssd"],
  ["/x%2f..%2Fadmin", "sssd"],
  ["/%2Fadmin", "sssd"],
  ["/admin%5Cx", "sssd"],
  // Other paths, to a server that knows case, parameters and the end of a name
  ["/Admin", "ssss"],
  ["/admin;a=b", "ssss"],
  ["/admin.", "ssss"],
  ["/administrator", "ssss"],
  ["/admin%20", "ssss"],
  ["/admin%00", "srrr"],
];

const OUTCOMES: Readonly<Record<string, number>> = { d: 403, s: 200, r: 400 };
const DENY_ADMIN = policy("admin", '{action: DENY, rules: [{to: [{operation: {paths: [/admin, "/admin/*"]}}]}]}');

describe("a policy on paths", () => {
  for (const [mode, name] of MODES.entries()) {
    it(`sees them as the server does, with normalization ${name}`, async () => {
      const shop = await guardedGateway(DENY_ADMIN, { "mesh.yaml": `pathNormalization: {normalization: ${name}}\n` });
      for (const [path, outcomes] of PATHS) expect([path, await statusOf(shop, { path })]).toEqual([path, OUTCOMES[outcomes[mode] ?? ""]]);
      // Whatever was served is not what the policy names, letter by letter.
      const served = shop.v1.hits.map(({ url }) => url.split("?", 1)[0] ?? "");
      expect(served.filter((path) => path === "/admin" || path.startsWith("/admin/"))).toEqual([]);
      expect(served).toHaveLength(PATHS.filter(([, outcomes]) => outcomes[mode] === "s").length);
    });
  }
});

describe("a policy that allows paths", () => {
  it("lets nothing else through, however it is written", async () => {
    const shop = await guardedGateway(policy("public", '{rules: [{to: [{operation: {paths: [/public, "/public/*"]}}]}]}'));
    const table: readonly [path: string, status: number][] = [
      ["/public", 200],
      ["/public?x=/admin", 200],
      ["/x/../public", 200],
      ["/%70ublic", 200],
      ["/public/../admin", 403],
      ["/public/%2e%2e/admin", 403],
      ["/public/..\\admin", 403],
      ["//public", 403],
      ["/Public", 403],
      ["/public;x", 403],
      ["/public.", 403],
      ["/publicity", 403],
      ["/public%2Fx", 403],
      ["/", 403],
    ];
    for (const [path, status] of table) expect([path, await statusOf(shop, { path })]).toEqual([path, status]);
    expect(shop.v1.hits.every(({ url }) => /^\/public([/?]|$)/.test(url))).toBe(true);
  });
});

describe("a policy on hosts", () => {
  it("knows no case, and takes a port only where it says so", async () => {
    const denied = (hosts: string) => policy("host", `{action: DENY, rules: [{to: [{operation: {hosts: ${hosts}}}]}]}`);
    const bare = await guardedGateway(denied(`[${SHOP_HOST}]`));
    const both = await guardedGateway(denied(`[${SHOP_HOST}, "${SHOP_HOST}:*"]`));
    const table: readonly [change: { readonly host: string; readonly path?: string }, bare: number, both: number][] = [
      [{ host: SHOP_HOST }, 403, 403],
      [{ host: SHOP_HOST.toUpperCase() }, 403, 403],
      [{ host: `${SHOP_HOST}:80` }, 200, 403],
      [{ host: `${SHOP_HOST}:65000` }, 200, 403],
      [{ host: "harmless.test", path: `http://${SHOP_HOST}/` }, 403, 403],
      [{ host: `x.${SHOP_HOST}` }, 404, 404],
      // With the dot of a full name it is another host, and none of ours.
      [{ host: `${SHOP_HOST}.` }, 404, 404],
      [{ host: `${SHOP_HOST}.:80` }, 404, 404],
    ];
    for (const [change, ...statuses] of table) {
      expect([change, await statusOf(bare, change), await statusOf(both, change)]).toEqual([change, ...statuses]);
    }
  });
});
