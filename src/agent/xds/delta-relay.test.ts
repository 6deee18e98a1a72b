import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { tempDir } from "../../../test/support/cleanup.ts";
import { type ManualClock, manualClock } from "../../../test/support/manual-clock.ts";
import { systemClock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import {
  type DeltaRequestParts,
  type DeltaResponse,
  deltaRequestBytes,
  deltaResponseBytes,
  readDeltaResource,
  readDeltaResponse,
} from "../../wire/delta-frames.ts";
import { type DiscoveryRequest, readDeltaRequest } from "../../wire/discovery-request.ts";
import { textField } from "../../wire/field-writer.ts";
import { type ClientCallEvents, GrpcError } from "../../wire/grpc-channel.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, PEER_TYPE, PROXY_CONFIG_TYPE } from "../../wire/type-urls.ts";
import type { Connection } from "../dialer.ts";
import { DeltaRelay } from "./delta-relay.ts";
import { type LastGood, openLastGood } from "./last-good.ts";
import type { ResponseFilter, Uplink } from "./uplink.ts";
import { createXdsCounts, type XdsCounts, xdsMetrics } from "./xds-counts.ts";

/** A stream to a control plane that the test plays. */
interface Upstream {
  readonly heard: DiscoveryRequest[];
  /** Says that it has the stream, and no more. */
  take(): void;
  answer(response: Omit<Parameters<typeof deltaResponseBytes>[0], "removed">): void;
  breakOff(): void;
  end(): void;
}

interface Rig {
  readonly clock: ManualClock;
  readonly counts: XdsCounts;
  readonly relay: DeltaRelay;
  readonly upstreams: Upstream[];
  /** What reached Envoy. */
  readonly received: DeltaResponse[];
  readonly lastGood: LastGood;
  /** Addresses that were found to be of no use. */
  readonly avoided: string[];
  /** What is told of being connected. */
  readonly told: (string | undefined)[];
  /** No control plane can be reached while it is true. */
  unreachable: boolean;
  /** Says something as Envoy. */
  say(parts: DeltaRequestParts): void;
  /** Lets time pass and what waits for it happen. */
  pass(ms: number): Promise<void>;
}

const NODE = Buffer.from("node");

async function startRig(uplink: Partial<Uplink> = {}, kept?: LastGood): Promise<Rig> {
  const clock = manualClock();
  const counts = createXdsCounts();
  const upstreams: Upstream[] = [];
  const avoided: string[] = [];
  const told: (string | undefined)[] = [];
  const received: DeltaResponse[] = [];
  const lastGood = kept ?? openLastGood({ directory: join(await tempDir(), "kept"), nodeId: "n", clock: systemClock, log: silentLog });
  const dial = async (): Promise<Connection> => {
    if (rig.unreachable) throw new Error("nobody there");
    const channel = { open: (_: string, __: unknown, events: ClientCallEvents) => play(upstreams, events), close() {} };
    return { channel, headers: {}, address: "istiod:15012" } as unknown as Connection;
  };
  const whole: Uplink = { subscriptions: [], announcements: [], filters: new Map(), ...uplink };
  const relay = new DeltaRelay(
    { send: ([bytes]: readonly Uint8Array[]) => received.push(readDeltaResponse(bytes ?? new Uint8Array())) } as never,
    {
      dialer: { dial, avoid: (address) => void avoided.push(address) },
      lastGood,
      uplink: whole,
      own: new Map(whole.subscriptions.map((subscription) => [subscription.typeUrl, { subscription, held: new Map() }])),
      counts,
      clock,
      log: silentLog,
      passed() {},
      connected: (address) => void told.push(address),
    },
  );
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve));
    await lastGood.flush();
  };
  const rig: Rig = {
    clock,
    counts,
    relay,
    upstreams,
    received,
    lastGood,
    avoided,
    told,
    unreachable: false,
    say: (parts) => relay.message(deltaRequestBytes(parts)),
    async pass(ms) {
      await settle();
      clock.advance(ms);
      await settle();
    },
  };
  return rig;
}

function play(upstreams: Upstream[], events: ClientCallEvents): { send(bytes: Uint8Array): void; cancel(): void } {
  const heard: DiscoveryRequest[] = [];
  upstreams.push({
    heard,
    take: () => events.taken?.(),
    answer: (response) => events.message(deltaResponseBytes({ ...response, removed: [] })),
    breakOff: () => events.ended(new GrpcError(14, "lost")),
    end: () => events.ended(undefined),
  });
  return { send: (bytes) => void heard.push(readDeltaRequest(bytes)), cancel() {} };
}

const resource = (name: string, version: string): Buffer => Buffer.concat([textField(1, version), textField(3, name)]);
const names = ({ resources }: DeltaResponse): readonly string[] => resources.map(({ name, version }) => `${name}@${version}`);

describe("an Envoy's configuration stream", () => {
  it("passes what is said both ways", async () => {
    const rig = await startRig();
    rig.say({ typeUrl: CLUSTER_TYPE, node: NODE });
    await rig.pass(0);
    const [upstream] = rig.upstreams;
    expect(upstream?.heard).toMatchObject([{ typeUrl: CLUSTER_TYPE, node: NODE, names: [] }]);
    upstream?.answer({ typeUrl: CLUSTER_TYPE, nonce: "1", resources: [resource("a", "1")] });
    expect(rig.received.map(names)).toEqual([["a@1"]]);
    rig.say({ typeUrl: CLUSTER_TYPE, nonce: "1" });
    rig.say({ typeUrl: ENDPOINT_TYPE, subscribe: ["a"] });
    expect(upstream?.heard.slice(1)).toMatchObject([{ nonce: "1" }, { typeUrl: ENDPOINT_TYPE, names: ["a"], node: undefined }]);
    await rig.pass(0);
    expect([...(await rig.lastGood.read(CLUSTER_TYPE)).keys()]).toEqual(["a"]);
  });

  it("goes on over a new stream upstream: with what Envoy wants and holds, without answers to the old one", async () => {
    const rig = await startRig();
    rig.say({ typeUrl: CLUSTER_TYPE, node: NODE });
    rig.say({ typeUrl: ENDPOINT_TYPE, subscribe: ["a"] });
    await rig.pass(0);
    rig.upstreams[0]?.answer({ typeUrl: CLUSTER_TYPE, nonce: "1", resources: [resource("a", "1")] });
    rig.say({ typeUrl: CLUSTER_TYPE, nonce: "1" });
    rig.upstreams[0]?.answer({ typeUrl: ENDPOINT_TYPE, nonce: "7", resources: [resource("a", "1")] });
    rig.upstreams[0]?.breakOff();
    await rig.pass(1_000);
    const next = rig.upstreams[1];
    expect(next?.heard).toMatchObject([
      { typeUrl: CLUSTER_TYPE, node: NODE, names: [], initialVersions: new Map([["a", "1"]]) },
      { typeUrl: ENDPOINT_TYPE, names: ["a"], initialVersions: new Map() },
    ]);
    rig.say({ typeUrl: ENDPOINT_TYPE, nonce: "7", subscribe: ["b"] });
    expect(next?.heard.slice(2)).toMatchObject([{ typeUrl: ENDPOINT_TYPE, nonce: "", names: ["b"] }]);
    await rig.pass(0);
    expect([...(await rig.lastGood.read(ENDPOINT_TYPE)).keys()]).toEqual(["a"]);
    expect(rig.received).toHaveLength(2);
    expect(rig.avoided).toEqual(["istiod:15012"]);
  });

  it("is opened anew soon after one that was served, however long nobody answered before", async () => {
    const rig = await startRig();
    rig.unreachable = true;
    rig.say({ typeUrl: CLUSTER_TYPE, node: NODE });
    for (let tries = 0; tries < 10; tries++) await rig.pass(15_000);
    rig.unreachable = false;
    await rig.pass(15_000);
    expect(rig.upstreams).toHaveLength(1);
    rig.upstreams[0]?.answer({ typeUrl: CLUSTER_TYPE, nonce: "1", resources: [] });
    rig.upstreams[0]?.breakOff();
    await rig.pass(250);
    expect(rig.upstreams).toHaveLength(2);
  });

  it("is served by who has taken it, though he has nothing to say: not from disk, and anew soon when it is lost", async () => {
    const rig = await startRig();
    rig.say({ typeUrl: CLUSTER_TYPE, node: NODE });
    await rig.pass(0);
    rig.upstreams[0]?.answer({ typeUrl: CLUSTER_TYPE, nonce: "1", resources: [resource("a", "1")] });
    rig.say({ typeUrl: CLUSTER_TYPE, nonce: "1" });
    rig.lastGood.note(CLUSTER_TYPE, [readDeltaResource(resource("b", "1"))], []);
    rig.lastGood.note(ENDPOINT_TYPE, [readDeltaResource(resource("b", "1"))], []);
    rig.unreachable = true;
    rig.upstreams[0]?.breakOff();
    for (let tries = 0; tries < 10; tries++) await rig.pass(15_000);
    await expect.poll(() => rig.received.map(names)).toEqual([["a@1"], ["b@1"]]);
    rig.unreachable = false;
    await rig.pass(15_000);
    rig.upstreams[1]?.take();
    await rig.pass(10_000);
    rig.say({ typeUrl: ENDPOINT_TYPE, subscribe: ["b"] });
    await rig.pass(0);
    expect(rig.received, "the control plane is asked, not the disk").toHaveLength(2);
    expect(rig.told.filter((address) => address !== undefined)).toEqual(["istiod:15012", "istiod:15012"]);
    rig.upstreams[1]?.breakOff();
    await rig.pass(250);
    expect(rig.upstreams).toHaveLength(3);
  });

  it("does not keep what Envoy rejects, and asks for it anew on the next stream", async () => {
    const rig = await startRig();
    rig.say({ typeUrl: CLUSTER_TYPE, node: NODE });
    await rig.pass(0);
    const [upstream] = rig.upstreams;
    upstream?.answer({ typeUrl: CLUSTER_TYPE, nonce: "1", resources: [resource("a", "1")] });
    rig.say({ typeUrl: CLUSTER_TYPE, nonce: "1" });
    upstream?.answer({ typeUrl: CLUSTER_TYPE, nonce: "2", resources: [resource("a", "2")] });
    rig.say({ typeUrl: CLUSTER_TYPE, nonce: "2", error: { code: 3, message: "bad" } });
    await rig.pass(0);
    expect(upstream?.heard.at(-1)).toMatchObject({ nonce: "2", error: { message: "bad" } });
    expect([...(await rig.lastGood.read(CLUSTER_TYPE)).values()].map(({ version }) => version)).toEqual(["1"]);
    upstream?.breakOff();
    await rig.pass(1_000);
    expect(rig.upstreams[1]?.heard).toMatchObject([{ initialVersions: new Map([["a", "1"]]) }]);
  });

  it("is served from disk where nobody answers, or says nothing, and is brought up to date by who comes back", async () => {
    const rig = await startRig();
    rig.lastGood.note(CLUSTER_TYPE, [readDeltaResource(resource("a", "1"))], []);
    rig.unreachable = true;
    rig.say({ typeUrl: CLUSTER_TYPE, node: NODE });
    await rig.pass(0);
    await expect.poll(() => rig.received.map(names)).toEqual([["a@1"]]);
    rig.say({ typeUrl: CLUSTER_TYPE, nonce: rig.received[0]?.nonce ?? "" });
    rig.unreachable = false;
    await rig.pass(1_000);
    expect(rig.upstreams[0]?.heard).toMatchObject([{ initialVersions: new Map([["a", "1"]]) }]);
    await rig.pass(5_000);
    expect(rig.received).toHaveLength(1);
    rig.upstreams[0]?.answer({ typeUrl: CLUSTER_TYPE, nonce: "1", resources: [resource("a", "2")] });
    expect(rig.received.map(names).at(-1)).toEqual(["a@2"]);
  });

  it("is told once that there is nothing, where nobody answers and there was nothing the last time", async () => {
    const rig = await startRig();
    rig.say({ typeUrl: CLUSTER_TYPE, node: NODE });
    await rig.pass(0);
    rig.upstreams[0]?.answer({ typeUrl: CLUSTER_TYPE, nonce: "1", resources: [] });
    rig.say({ typeUrl: CLUSTER_TYPE, nonce: "1" });
    rig.unreachable = true;
    rig.upstreams[0]?.breakOff();
    await rig.pass(1_000);
    expect(rig.received, "who was told already is not told again").toHaveLength(1);
    const next = await startRig({}, rig.lastGood);
    next.unreachable = true;
    next.say({ typeUrl: CLUSTER_TYPE, node: NODE });
    next.say({ typeUrl: LISTENER_TYPE });
    next.say({ typeUrl: ENDPOINT_TYPE, subscribe: ["a"] });
    await next.pass(0);
    await expect.poll(() => next.received).toMatchObject([{ typeUrl: CLUSTER_TYPE, resources: [] }]);
    next.say({ typeUrl: CLUSTER_TYPE, nonce: next.received[0]?.nonce ?? "" });
    for (let tries = 0; tries < 3; tries++) await next.pass(15_000);
    expect(next.received, "of what nobody ever said anything nothing is said").toHaveLength(1);
  });

  for (const how of ["says nothing", "takes the stream and says nothing"])
    it(`does not wait for ever for a control plane that ${how}`, async () => {
      const rig = await startRig();
      rig.lastGood.note(CLUSTER_TYPE, [readDeltaResource(resource("a", "1"))], []);
      rig.say({ typeUrl: CLUSTER_TYPE, node: NODE });
      await rig.pass(2_000);
      if (how !== "says nothing") rig.upstreams[0]?.take();
      expect(rig.received).toEqual([]);
      await rig.pass(2_000);
      await expect.poll(() => rig.received.map(names)).toEqual([["a@1"]]);
      rig.lastGood.note(ENDPOINT_TYPE, [readDeltaResource(resource("a", "1"))], []);
      rig.say({ typeUrl: ENDPOINT_TYPE, subscribe: ["a"] });
      await expect.poll(() => rig.received).toHaveLength(2);
    });
});

describe("the agent's own part of the stream", () => {
  it("asks for its types, keeps them to itself, and says what it has when the stream is another", async () => {
    const taken: string[] = [];
    const own = {
      typeUrl: PROXY_CONFIG_TYPE,
      names: [],
      taken(response: DeltaResponse) {
        if (response.nonce === "bad") throw new Error("not this");
        taken.push(...names(response));
      },
    };
    const rig = await startRig({ subscriptions: [own], announcements: [() => ({ typeUrl: "health" })] });
    rig.say({ typeUrl: CLUSTER_TYPE, node: NODE });
    await rig.pass(0);
    const [upstream] = rig.upstreams;
    expect(upstream?.heard.map(({ typeUrl }) => typeUrl)).toEqual([CLUSTER_TYPE, PROXY_CONFIG_TYPE, "health"]);
    upstream?.answer({ typeUrl: PROXY_CONFIG_TYPE, nonce: "1", resources: [resource("roots", "5")] });
    upstream?.answer({ typeUrl: PROXY_CONFIG_TYPE, nonce: "bad", resources: [] });
    expect([taken, rig.received]).toEqual([["roots@5"], []]);
    expect(upstream?.heard.slice(3)).toMatchObject([
      { nonce: "1", error: undefined },
      { nonce: "bad", error: { message: "not this" } },
    ]);
    rig.relay.announce();
    expect(upstream?.heard.at(-1)?.typeUrl).toBe("health");
    upstream?.breakOff();
    await rig.pass(1_000);
    expect(rig.upstreams[1]?.heard[1]?.initialVersions).toEqual(new Map([["roots", "5"]]));
  });

  it("may change what Envoy gets, and keeps what Envoy got", async () => {
    const change = async (response: DeltaResponse): Promise<Uint8Array> =>
      deltaResponseBytes({ ...response, resources: [resource("a", "changed")] });
    const rig = await startRig({ filters: new Map([[CLUSTER_TYPE, change]]) });
    rig.say({ typeUrl: CLUSTER_TYPE, node: NODE });
    await rig.pass(0);
    rig.upstreams[0]?.answer({ typeUrl: CLUSTER_TYPE, nonce: "1", resources: [resource("a", "1")] });
    await rig.pass(0);
    expect(rig.received.map(names)).toEqual([["a@changed"]]);
    rig.say({ typeUrl: CLUSTER_TYPE, nonce: "1" });
    await rig.pass(0);
    expect((await rig.lastGood.read(CLUSTER_TYPE)).get("a")?.version).toBe("changed");
  });

  it("may send more later, of which the control plane hears nothing", async () => {
    let send: (resources: readonly Uint8Array[]) => void = () => {};
    const filter: ResponseFilter = async (_, bytes, later) => {
      send = later;
      return bytes;
    };
    const rig = await startRig({ filters: new Map([[CLUSTER_TYPE, filter]]) });
    rig.say({ typeUrl: CLUSTER_TYPE, node: NODE });
    await rig.pass(0);
    rig.upstreams[0]?.answer({ typeUrl: CLUSTER_TYPE, nonce: "1", resources: [resource("a", "1")] });
    await rig.pass(0);
    rig.say({ typeUrl: CLUSTER_TYPE, nonce: "1" });
    send([resource("a", "2")]);
    await rig.pass(0);
    expect(rig.received.map(names)).toEqual([["a@1"], ["a@2"]]);
    const heard = rig.upstreams[0]?.heard.length;
    rig.say({ typeUrl: CLUSTER_TYPE, nonce: rig.received[1]?.nonce ?? "" });
    await rig.pass(0);
    expect(rig.upstreams[0]?.heard.length).toBe(heard);
    expect((await rig.lastGood.read(CLUSTER_TYPE)).get("a")?.version).toBe("2");
  });

  it("asks for what the agent wants on demand when it wants it, and again on the next stream", async () => {
    const wanted: string[] = [];
    const rig = await startRig({ subscriptions: [{ typeUrl: PEER_TYPE, names: wanted, onDemand: true, taken() {} }] });
    const asked = (upstream: Upstream | undefined) =>
      upstream?.heard.filter(({ typeUrl }) => typeUrl === PEER_TYPE).map(({ names: list }) => list.join());
    rig.say({ typeUrl: CLUSTER_TYPE, node: NODE });
    await rig.pass(0);
    expect(asked(rig.upstreams[0])).toEqual([]);
    wanted.push("shop/10.0.0.1");
    rig.relay.say({ typeUrl: PEER_TYPE, subscribe: ["shop/10.0.0.1"] });
    expect(asked(rig.upstreams[0])).toEqual(["shop/10.0.0.1"]);
    rig.upstreams[0]?.answer({ typeUrl: PEER_TYPE, nonce: "p1", resources: [resource("shop/10.0.0.1", "v1")] });
    rig.upstreams[0]?.breakOff();
    await rig.pass(0);
    wanted.push("shop/10.0.0.2");
    rig.relay.say({ typeUrl: PEER_TYPE, subscribe: ["shop/10.0.0.2"] });
    await rig.pass(1_000);
    expect(asked(rig.upstreams[1])).toEqual(["shop/10.0.0.1,shop/10.0.0.2"]);
    const [again] = rig.upstreams[1]?.heard.filter(({ typeUrl }) => typeUrl === PEER_TYPE) ?? [];
    expect([...(again?.initialVersions ?? [])]).toEqual([["shop/10.0.0.1", "v1"]]);
  });

  it("counts messages and ends of streams under Istio's names", async () => {
    const rig = await startRig();
    rig.unreachable = true;
    rig.say({ typeUrl: CLUSTER_TYPE, node: NODE });
    await rig.pass(0);
    rig.unreachable = false;
    await rig.pass(1_000);
    rig.upstreams[0]?.answer({ typeUrl: CLUSTER_TYPE, nonce: "1", resources: [resource("a", "1")] });
    rig.say({ typeUrl: CLUSTER_TYPE, nonce: "1" });
    rig.upstreams[0]?.breakOff();
    await rig.pass(1_000);
    rig.upstreams[1]?.end();
    await rig.pass(0);
    rig.relay.ended();
    const values = xdsMetrics(rig.counts).map(({ name, type, values: read }) => [name, type, ...read()]);
    expect(values).toEqual([
      ["istiod_connection_failures", "counter", { value: 1 }],
      ["istiod_connection_terminations", "counter", { labels: { type: "cancelled" }, value: 1 }, { labels: { type: "error" }, value: 1 }],
      ["envoy_connection_terminations", "counter", { labels: { type: "cancelled" }, value: 1 }, { labels: { type: "error" }, value: 0 }],
      ["xds_proxy_requests", "counter", { value: 2 }],
      ["xds_proxy_responses", "counter", { value: 1 }],
    ]);
  });
});
