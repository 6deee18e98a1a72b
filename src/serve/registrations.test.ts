import { create } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { tempDir } from "../../test/support/cleanup.ts";
import { manualClock } from "../../test/support/manual-clock.ts";
import { silentLog } from "../base/log.ts";
import { readObject } from "../config/read-object.ts";
import { NodeSchema } from "../gen/envoy/config/core/v3/base_pb.js";
import { readNode } from "../generate/proxy-view.ts";
import { GRPC_STATUS } from "../wire/grpc-status.ts";
import { createRegistrations } from "./registrations.ts";

const GROUP = readObject({
  origin: { source: "test" },
  slot: "1",
  content: {
    apiVersion: "networking.istio.io/v1",
    kind: "WorkloadGroup",
    metadata: { name: "carts", namespace: "shop" },
    spec: { template: { serviceAccount: "cart" } },
  },
}).object;

const node = create(NodeSchema, {
  id: "sidecar~10.0.0.7~vm.shop~shop.svc.cluster.local",
  metadata: { AUTO_REGISTER_GROUP: "carts", SERVICE_ACCOUNT: "cart", PROXY_CONFIG: { readinessProbe: {} } },
});

async function rig(changed: { readonly autoRegistration?: boolean; readonly workloadHealthChecks?: boolean } = {}) {
  const noted: string[] = [];
  const registrations = await createRegistrations({
    baseDir: await tempDir(),
    settings: { autoRegistration: true, workloadHealthChecks: true, workloadEntryGraceMs: 10_000, podName: "", ...changed },
    store: () => ({ get: (key) => (key === "WorkloadGroup/shop/carts" ? GROUP : undefined) }),
    clock: manualClock(),
    log: silentLog,
    note: (event) => noted.push(event),
  });
  onTestFinished(() => registrations.source.stop());
  const read = readNode(node);
  if ("refused" in read) throw new Error(read.refused);
  const see = (proven: boolean, peer = { address: "10.0.0.7:1", header: () => undefined, certificate: undefined }): void =>
    registrations.seen(node, { ...read.view, proven }, peer);
  const entries = async (): Promise<readonly unknown[]> => {
    for await (const event of registrations.source.events(new AbortController().signal))
      return event.type === "reset" ? event.objects.map(({ content }) => content) : [];
    return [];
  };
  return { registrations, see, entries, noted };
}

describe("a proxy that wants to be registered", () => {
  it("must have proved who it is", async () => {
    const { see, entries } = await rig();
    expect(() => see(false)).toThrow(expect.objectContaining({ status: GRPC_STATUS.PERMISSION_DENIED }));
    expect(await entries()).toEqual([]);
  });

  it("is registered once for its stream, however often it is looked at, and ill until it is said to be well", async () => {
    const { registrations, see, entries, noted } = await rig();
    const peer = { address: "10.0.0.7:1", header: () => undefined, certificate: undefined };
    for (let look = 0; look < 3; look++) see(true, peer);
    expect(noted).toEqual(["registered"]);
    expect(await entries()).toMatchObject([{ metadata: { annotations: { "proxy.istio.io/health-checks-enabled": "true" } } }]);
    registrations.health({ ...peer }, { error: { code: 1, message: "not mine" } });
    expect(await entries()).toMatchObject([{ spec: { address: "10.0.0.7" } }]);
    expect(JSON.stringify(await entries())).not.toContain("status");
    registrations.health(peer, { error: undefined });
    expect(await entries()).toMatchObject([{ status: { conditions: [{ type: "Healthy", status: "True" }] } }]);
    registrations.left(peer);
    expect(noted).toEqual(["registered", "disconnected"]);
  });

  it("is left alone where registration is off, and its health where that is", async () => {
    const off = await rig({ autoRegistration: false });
    off.see(false);
    expect(await off.entries()).toEqual([]);
    const { registrations, see, entries } = await rig({ workloadHealthChecks: false });
    const peer = { address: "10.0.0.7:1", header: () => undefined, certificate: undefined };
    see(true, peer);
    registrations.health(peer, { error: undefined });
    expect(JSON.stringify(await entries())).not.toContain("conditions");
  });
});
