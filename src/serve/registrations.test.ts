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

const ENTRY = readObject({
  origin: { source: "test" },
  slot: "2",
  content: {
    apiVersion: "networking.istio.io/v1",
    kind: "WorkloadEntry",
    metadata: { name: "machine", namespace: "shop", annotations: { "proxy.istio.io/health-checks-enabled": "true" } },
    spec: { address: "10.0.0.8", serviceAccount: "cart" },
  },
}).object;
const OBJECTS = new Map([
  ["WorkloadGroup/shop/carts", GROUP],
  ["WorkloadEntry/shop/machine", ENTRY],
]);

interface Rigging {
  readonly autoRegistration?: boolean;
  readonly workloadHealthChecks?: boolean;
  readonly baseDir?: string;
}

async function rig({ baseDir, ...changed }: Rigging = {}) {
  const noted: string[] = [];
  const health: (readonly [key: string, healthy: boolean | undefined])[] = [];
  const clock = manualClock();
  const registrations = await createRegistrations({
    baseDir: baseDir ?? (await tempDir()),
    settings: { autoRegistration: true, workloadHealthChecks: true, workloadEntryGraceMs: 10_000, podName: "", ...changed },
    store: () => ({ get: (key) => OBJECTS.get(key), status: () => undefined }),
    board: () => undefined,
    clock,
    log: silentLog,
    note: (event) => noted.push(event),
    healthChanged: (key, healthy) => health.push([key, healthy]),
  });
  onTestFinished(() => registrations.stop());
  const read = readNode(node);
  if ("refused" in read) throw new Error(read.refused);
  const see = (proven: boolean, peer = { address: "10.0.0.7:1", header: () => undefined, certificate: undefined }): void =>
    registrations.seen(node, { ...read.view, proven }, peer);
  const entries = async (): Promise<readonly unknown[]> => {
    const contents: unknown[] = [];
    for await (const event of registrations.source.events(new AbortController().signal)) {
      if (event.type === "reset") for await (const { content } of event.objects) contents.push(content);
      break;
    }
    return contents;
  };
  return { registrations, see, entries, noted, health, clock };
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

describe("a proxy that says which WorkloadEntry was written for it", () => {
  const peer = () => ({ address: "10.0.0.8:1", header: () => undefined, certificate: undefined });
  const says = (entry: string, account = "cart") => {
    const said = create(NodeSchema, {
      id: "sidecar~10.0.0.8~vm.shop~shop.svc.cluster.local",
      metadata: { WORKLOAD_ENTRY: entry, SERVICE_ACCOUNT: account },
    });
    const read = readNode(said);
    if ("refused" in read) throw new Error(read.refused);
    return [said, { ...read.view, proven: true }] as const;
  };
  const KEY = "WorkloadEntry/shop/machine";

  it("is believed about its health as long as it is connected, and a while more", async () => {
    const { registrations, health, clock } = await rig();
    const one = peer();
    for (let look = 0; look < 2; look++) registrations.seen(...says("machine"), one);
    registrations.health(one, { error: undefined });
    registrations.health(one, { error: undefined });
    registrations.health(one, { error: { code: 500, message: "ill" } });
    registrations.health(peer(), { error: undefined });
    expect(health).toEqual([
      [KEY, true],
      [KEY, false],
    ]);
    registrations.left(one);
    clock.advance(9_000);
    const again = peer();
    registrations.seen(...says("machine"), again);
    clock.advance(9_000);
    expect(health).toHaveLength(2);
    registrations.left(again);
    clock.advance(10_000);
    expect(health.at(-1)).toEqual([KEY, undefined]);
  });

  it("is believed over a restart", async () => {
    const baseDir = await tempDir();
    const before = await rig({ baseDir });
    const one = peer();
    before.registrations.seen(...says("machine"), one);
    before.registrations.health(one, { error: undefined });
    await before.registrations.stop();
    const after = await rig({ baseDir });
    expect(after.health).toEqual([[KEY, true]]);
    after.clock.advance(30_000);
    expect(after.health.at(-1)).toEqual([KEY, undefined]);
  });

  it("must be who the entry is for", async () => {
    const { registrations } = await rig();
    expect(() => registrations.seen(...says("machine", "web"), peer())).toThrow("of another service account");
    expect(() => registrations.seen(...says("nobody"), peer())).toThrow("there is no WorkloadEntry/shop/nobody");
    const [node, view] = says("machine");
    expect(() => registrations.seen(node, { ...view, proven: false }, peer())).toThrow("only a workload that has proved who it is");
  });
});
