import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { nodeOf } from "../../bench/client.ts";
import { referencesOf } from "../../bench/discovery-wire.ts";
import { sceneProxies } from "../../bench/scene.ts";
import { type SceneWorld, sceneWorld } from "../../bench/scene-world.ts";
import { NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import { readNode } from "../../src/generate/proxy-view.ts";
import type { ProxyView } from "../../src/model/proxy.ts";
import type { ResourceSet } from "../../src/wire/encoded.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE, shortTypeName } from "../../src/wire/type-urls.ts";
import { createNameSets } from "../../src/xds/name-sets.ts";

const SHAPE = {
  services: 400,
  endpoints: 3,
  namespaces: 20,
  virtualServices: 60,
  destinationRules: 60,
  proxies: 4,
  classes: 2,
};

/** Queries that may run between two pauses: far fewer than there are services. Rules are glanced at all at once, to see whom they are about. */
const MOST_RUNS = 100;
/** What is left to the end is put together, not made. */
const MOST_RUNS_AT_THE_END = 20;

const names = createNameSets();

/** Asks for resources of a type as a stream does, step by step; gives how many queries ran in each step, and at the end. */
function asked({ world }: SceneWorld, view: ProxyView, { typeUrl, wanted }: { typeUrl: string; wanted?: readonly string[] }) {
  const provider = world.providers.find((one) => one.typeUrl === typeUrl);
  assert.ok(provider);
  const want = { wildcard: wanted === undefined, names: names.of([...(wanted ?? [])]) };
  let before = world.engine.stats().runs;
  const runsSince = (): number => {
    const { runs } = world.engine.stats();
    const since = runs - before;
    before = runs;
    return since;
  };
  const steps: number[] = [];
  for (const _ of provider.prepare(view, want)) steps.push(runsSince());
  const set = provider.offered(view, want);
  return { set, steps, end: runsSince() };
}

const referred = ({ resources }: ResourceSet, typeUrl: string): readonly string[] =>
  [...resources.values()].flatMap(({ body }) => [...referencesOf(typeUrl, Buffer.from(body))]);

describe("the first proxy of a large mesh", () => {
  it("is worked for in small steps", () => {
    const scene = sceneWorld(SHAPE);
    const [proxy] = sceneProxies(SHAPE);
    assert.ok(proxy);
    const facts = readNode(create(NodeSchema, nodeOf(proxy)));
    assert.ok(!("refused" in facts));
    const view = scene.world.view(facts);
    const clusters = asked(scene, view, { typeUrl: CLUSTER_TYPE });
    const endpoints = asked(scene, view, { typeUrl: ENDPOINT_TYPE, wanted: referred(clusters.set, CLUSTER_TYPE) });
    const listeners = asked(scene, view, { typeUrl: LISTENER_TYPE });
    const routes = asked(scene, view, { typeUrl: ROUTE_TYPE, wanted: referred(listeners.set, LISTENER_TYPE) });
    for (const [typeUrl, { steps, end }] of [
      [CLUSTER_TYPE, clusters],
      [ENDPOINT_TYPE, endpoints],
      [LISTENER_TYPE, listeners],
      [ROUTE_TYPE, routes],
    ] as const) {
      const most = Math.max(...steps);
      assert.ok(most <= MOST_RUNS, `${shortTypeName(typeUrl)}: ${most} runs in step ${steps.indexOf(most)} of ${steps.length}`);
      assert.ok(end <= MOST_RUNS_AT_THE_END, `${shortTypeName(typeUrl)}: ${end} runs at the end`);
    }
  });
});
