import assert from "node:assert/strict";
import { beforeEach, describe, it } from "vitest";
import { type ManualClock, manualClock } from "../../test/support/manual-clock.ts";
import { connect, envoyProviders, testView } from "../../test/support/xds-model.ts";
import { silentLog } from "../base/log.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { CLUSTER_TYPE } from "../wire/type-urls.ts";
import { StreamRefusal } from "./refusal.ts";
import { createXdsServer, type XdsServer } from "./server.ts";

let clock: ManualClock;
let table: ReturnType<typeof envoyProviders>;
let server: XdsServer;

beforeEach(() => {
  clock = manualClock();
  table = envoyProviders();
  server = createXdsServer({ providers: table.all, viewOf: (node) => testView(node.id), clock, log: silentLog });
});

const settle = async (): Promise<void> => {
  await new Promise((resolve) => setImmediate(resolve));
  await server.idle();
};

describe("who may have a stream", () => {
  it("nobody without a node", async () => {
    const nameless = connect(server, { variant: "delta", node: "" });
    nameless.client.subscribe(CLUSTER_TYPE);
    await settle();
    assert.equal(nameless.closed?.status, GRPC_STATUS.INVALID_ARGUMENT);
  });

  it("a caller is turned away with the reason given, also later", async () => {
    let refuse = false;
    const strict = createXdsServer({
      providers: table.all,
      clock,
      log: silentLog,
      viewOf: (node) => {
        if (refuse) throw new StreamRefusal(GRPC_STATUS.PERMISSION_DENIED, "not you");
        return testView(node.id);
      },
    });
    const connection = connect(strict, { variant: "delta" });
    connection.client.subscribe(CLUSTER_TYPE);
    await strict.idle();
    assert.equal(connection.closed, undefined);
    refuse = true;
    strict.push("test");
    await strict.idle();
    assert.deepEqual(connection.closed, { status: GRPC_STATUS.PERMISSION_DENIED, reason: "not you" });
    assert.equal(strict.state().length, 0);
  });

  it("nobody who keeps silent", () => {
    const connection = connect(server, { variant: "delta" });
    clock.advance(20_000);
    assert.equal(connection.closed?.status, GRPC_STATUS.DEADLINE_EXCEEDED);
  });

  it("nobody while it drains", async () => {
    const early = connect(server, { variant: "delta" });
    server.drain();
    const late = connect(server, { variant: "delta" });
    assert.equal(early.closed?.status, GRPC_STATUS.UNAVAILABLE);
    assert.equal(late.closed?.status, GRPC_STATUS.UNAVAILABLE);
  });
});
