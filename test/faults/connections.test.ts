import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { create, toBinary } from "@bufbuild/protobuf";
import { describe, it, onTestFinished } from "vitest";
import { memoryMb } from "../../bench/process-usage.ts";
import { DeltaDiscoveryRequestSchema } from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { CLUSTER_TYPE } from "../../src/wire/type-urls.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { RawStream } from "../support/raw-stream.ts";
import { eventually } from "../support/wait.ts";
import { subscribe } from "../support/xds-subscriber.ts";

const CONNECTIONS = 10_000;
/** Connections that are on their way at a time: what the system lets wait for a program that is slow to accept. */
const AT_ONCE = 400;
/** One connection with its stream and what is known of its proxy. */
const MOST_KB_EACH = 80;
const WAIT_MS = 240_000;

const entry = (address: string): string => `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: one, namespace: shop}
spec: {hosts: [one.test], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS, endpoints: [{address: ${address}}]}
`;

const requestOf = (index: number): Uint8Array =>
  toBinary(
    DeltaDiscoveryRequestSchema,
    create(DeltaDiscoveryRequestSchema, {
      node: { id: `sidecar~10.${index >> 16}.${(index >> 8) & 255}.${index & 255}~p-${index}.shop~shop.svc.cluster.local` },
      typeUrl: CLUSTER_TYPE,
    }),
  );

const handlesOf = (istiod: Istiod): number => readdirSync(`/proc/${istiod.pid()}/fd`).length;

/** Opens all of them, some at a time, and resolves when each has been sent something. */
function connectAll({ grpcPort }: Istiod): Promise<readonly RawStream[]> {
  const streams: RawStream[] = [];
  onTestFinished(() => {
    for (const stream of streams) stream.close();
  });
  return new Promise((resolve, reject) => {
    let [served, opened] = [0, 0];
    const open = (): void => {
      const index = opened++;
      let counted = false;
      const stream = new RawStream({
        port: grpcPort,
        from: `127.0.0.${2 + (index % 10)}`,
        request: requestOf(index),
        changed() {
          if (counted || (stream.messages === 0 && !stream.isOver)) return;
          counted = true;
          if (stream.isOver) return reject(new Error(`connection ${index} was cut`));
          served += 1;
          if (opened < CONNECTIONS) open();
          else if (served === CONNECTIONS) resolve(streams);
        },
      });
      streams.push(stream);
    };
    for (let index = 0; index < AT_ONCE; index += 1) open();
  });
}

describe("10,000 connections", () => {
  it("are all served, cost little each, do not keep others from being told of changes, and leave nothing behind", async () => {
    const istiod = await startIstiod({
      files: { "conf/one.yaml": entry("1.one.test") },
      env: { PILOT_DEBOUNCE_AFTER: "10ms" },
    });
    const [handles, { rss }] = [handlesOf(istiod), memoryMb(istiod.pid())];
    const node = { id: "sidecar~10.255.0.1~friend.shop~shop.svc.cluster.local" };
    const friend = subscribe({ port: istiod.grpcPort, variant: "delta", node, typeUrl: CLUSTER_TYPE });
    await eventually("a proxy is served", () => friend.length > 0);
    const streams = await connectAll(istiod);
    assert.equal(await istiod.metric("pilot_xds"), CONNECTIONS + 1);
    const kbEach = ((memoryMb(istiod.pid()).rss - rss) * 1024) / CONNECTIONS;
    assert.ok(kbEach < MOST_KB_EACH, `${Math.round(kbEach)} KB for each`);

    const had = friend.length;
    await istiod.write("conf/one.yaml", entry("2.one.test"));
    await eventually("a proxy among them is told of a change", () => friend.length > had, WAIT_MS);

    for (const stream of streams) stream.close();
    await eventually("all are gone", async () => (await istiod.metric("pilot_xds")) === 1, WAIT_MS);
    await eventually("their handles are closed", () => handlesOf(istiod) <= handles + 20, WAIT_MS);
    assert.equal((await fetch(`http://127.0.0.1:${istiod.httpPort}/ready`)).status, 200);
  }, 900_000);
});
