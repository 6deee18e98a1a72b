import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { CLUSTER_TYPE, LISTENER_TYPE, ROUTE_TYPE, SECRET_TYPE } from "../wire/type-urls.ts";
import type { SyncState } from "./api-types.ts";
import { streamOf, typeStateOf } from "./stream-fixture.ts";
import { syncStatus } from "./sync-status.ts";

const statusesOf = (streams: Parameters<typeof syncStatus>[0]) => [...syncStatus(streams, "istiod-0")];

describe("syncStatus", () => {
  const rejection = { name: "outbound|80||a", version: "v2", error: "bad", fallback: "v1" };
  const table: readonly [name: string, type: Parameters<typeof typeStateOf>[0], state: SyncState][] = [
    ["acknowledged", {}, "SYNCED"],
    ["sent and not answered", { inSync: false, ackedNonce: "n1" }, "STALE"],
    ["subscribed, nothing sent", { inSync: false, sentNonce: undefined, ackedNonce: undefined }, "NOT SENT"],
    ["came back with all it needs", { sentNonce: undefined, ackedNonce: undefined }, "SYNCED"],
    ["refused something, otherwise in step", { rejected: [rejection], nacks: 1 }, "NACKED"],
  ];
  for (const [name, type, state] of table) {
    it(`a type that is ${name} is ${state}`, () => assert.equal(statusesOf([streamOf([typeStateOf(type)])])[0]?.types[0]?.state, state));
  }

  it("has Istio's fields: equal nonces mean in step", () => {
    const types = [
      typeStateOf({ typeUrl: CLUSTER_TYPE, sentNonce: "c2", ackedNonce: "c1" }),
      typeStateOf({ typeUrl: LISTENER_TYPE, sentNonce: "l2", ackedNonce: "l1", inSync: false }),
      typeStateOf({ typeUrl: ROUTE_TYPE, sentNonce: undefined, ackedNonce: undefined }),
    ];
    const [status] = syncStatus([streamOf(types)], "istiod-0");
    assert.equal(status?.proxy, "web.shop");
    assert.equal(status?.cluster_id, "Kubernetes");
    assert.equal(status?.istio_version, "1.32.0");
    assert.deepEqual([status?.cluster_sent, status?.cluster_acked], ["c2", "c2"]);
    assert.deepEqual([status?.listener_sent, status?.listener_acked], ["l2", "l1"]);
    assert.deepEqual([status?.route_sent, status?.route_acked], ["unchanged", "unchanged"]);
    assert.equal(status?.endpoint_sent, undefined);
    const sentTime = "2023-11-14T22:13:20.000Z";
    assert.deepEqual(status?.resources, {
      [CLUSTER_TYPE]: { sent: "c2", acked: "c2", sentTime },
      [LISTENER_TYPE]: { sent: "l2", acked: "l1", sentTime },
      [ROUTE_TYPE]: { sent: "unchanged", acked: "unchanged", sentTime },
    });
  });

  it("counts a proxy once that has a stream for its secrets beside the other", () => {
    const secrets = streamOf([typeStateOf({ typeUrl: SECRET_TYPE })], { id: "2" });
    const main = streamOf([typeStateOf({})]);
    const typesOf = (streams: Parameters<typeof syncStatus>[0]) => statusesOf(streams).map(({ types }) => types.map(({ type }) => type));
    assert.deepEqual(typesOf([secrets, main]), [["CDS", "SDS"]]);
    assert.deepEqual(typesOf([secrets]), [["SDS"]]);
  });

  it("leaves out streams that have not said who they are, and sorts the others", () => {
    const named = (name: string) => streamOf([], { node: `sidecar~10.0.0.1~${name}.shop~x` });
    const statuses = statusesOf([named("b"), streamOf([], { node: "", view: undefined }), named("a")]);
    assert.deepEqual(
      statuses.map(({ proxy }) => proxy),
      ["a.shop", "b.shop"],
    );
  });

  it("says what was refused and what is kept instead", () => {
    const [status] = syncStatus([streamOf([typeStateOf({ rejected: [rejection] })])], "istiod-0");
    assert.deepEqual(status?.types[0]?.rejected, [{ name: "outbound|80||a", version: "v2", error: "bad", kept: "v1" }]);
  });
});
