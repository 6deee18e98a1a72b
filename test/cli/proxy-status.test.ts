import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { proxyStatuses, statusDetails, statusTable } from "../../src/cli/commands/proxy-status.ts";
import type { SyncStatus, TypeSync } from "../../src/debug/api-types.ts";
import { istiodWith } from "./cli-host.ts";

const type = (fields: Partial<TypeSync>): TypeSync => ({
  type: "CDS",
  state: "SYNCED",
  resources: 3,
  nacks: 0,
  rejected: [],
  failed: [],
  ...fields,
});

const proxy = (fields: Partial<SyncStatus>): SyncStatus => ({
  cluster_id: "Kubernetes",
  proxy: "web.shop",
  proxy_type: "sidecar",
  istio_version: "1.32.0",
  resources: {},
  connection_id: "1",
  address: "10.0.0.1:4000",
  protocol: "delta",
  connected_at: "2026-01-01T00:00:00.000Z",
  istiod: "istiod-0",
  types: [type({}), type({ type: "LDS", state: "STALE" }), type({ type: "RDS", state: "NACKED" })],
  ...fields,
});

describe("istioctl proxy-status", () => {
  it("has a line for each proxy with the state of each type", () => {
    const [header, row] = statusTable([proxy({})]).split("\n");
    assert.deepEqual(header?.split(/\s{2,}/), ["NAME", "CLUSTER", "CDS", "LDS", "EDS", "RDS", "ISTIOD", "VERSION"]);
    assert.deepEqual(row?.split(/\s{2,}/), ["web.shop", "Kubernetes", "SYNCED", "STALE", "NOT SENT", "NACKED", "istiod-0", "1.32.0"]);
  });

  it("says so when nobody is connected", () => assert.equal(statusTable([]), "no proxy is connected"));

  it("tells of one proxy what it refuses and why, and what could not be made", () => {
    const rejected = [{ name: "outbound|80||a", version: "v2", error: "bad regex", kept: "v1" }];
    const failed = [{ name: "outbound|81||b", message: "boom" }];
    const text = statusDetails(proxy({ types: [type({ state: "NACKED", nacks: 2, rejected, failed })] }));
    assert.match(text, /web\.shop \(sidecar\) at 10\.0\.0\.1:4000/);
    assert.match(text, /refuses outbound\|80\|\|a \(keeps the version before\): bad regex/);
    assert.match(text, /outbound\|81\|\|b could not be made: boom/);
  });

  it("chooses by name with or without namespace, and knows who is not there", async () => {
    const istiod = istiodWith({ "/debug/syncz": [proxy({}), proxy({ proxy: "web-2.shop" })] });
    assert.equal((await proxyStatuses(istiod, undefined)).length, 2);
    assert.deepEqual(
      (await proxyStatuses(istiod, "web")).map(({ proxy: name }) => name),
      ["web.shop"],
    );
    assert.deepEqual(
      (await proxyStatuses(istiod, "web-2.shop")).map(({ proxy: name }) => name),
      ["web-2.shop"],
    );
    await assert.rejects(proxyStatuses(istiod, "web.other"), /no proxy named web\.other is connected/);
  });
});
