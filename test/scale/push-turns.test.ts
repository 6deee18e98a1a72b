import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { beforeAll, describe, it } from "vitest";
import { nodeOf } from "../../bench/client.ts";
import { endpointEdit, routeEdit, type SceneShape, sceneProxies } from "../../bench/scene.ts";
import { sceneWorld } from "../../bench/scene-world.ts";
import { systemClock } from "../../src/base/clock.ts";
import { silentLog } from "../../src/base/log.ts";
import { NodeSchema } from "../../src/gen/envoy/config/core/v3/base_pb.js";
import { readNode } from "../../src/generate/proxy-view.ts";
import { leaseProviders } from "../../src/serve/leases.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE, shortTypeName } from "../../src/wire/type-urls.ts";
import type { ResourceProvider } from "../../src/xds/provider.ts";
import { createXdsServer } from "../../src/xds/server.ts";
import { connect } from "../support/xds-model.ts";

const SHAPE: SceneShape = {
  services: 40,
  endpoints: 3,
  namespaces: 4,
  virtualServices: 8,
  destinationRules: 8,
  proxies: 40,
  classes: 4,
};

/** Proxies of a scene, connected to a server in this process, and how often each type had to be prepared for one of them. */
function setUp() {
  const scene = sceneWorld(SHAPE);
  const prepared = new Map<string, number>();
  const counted = (provider: ResourceProvider): ResourceProvider => ({
    ...provider,
    prepare(view, wanted) {
      const type = shortTypeName(provider.typeUrl);
      prepared.set(type, (prepared.get(type) ?? 0) + 1);
      return provider.prepare(view, wanted);
    },
  });
  const proxies = sceneProxies(SHAPE).map((proxy) => {
    const facts = readNode(create(NodeSchema, nodeOf(proxy)));
    assert.ok(!("refused" in facts));
    const wanted = new Map<string, readonly string[]>();
    scene.ask(proxy, (typeUrl, { resources }) => wanted.set(typeUrl, [...resources.keys()]));
    return { id: nodeOf(proxy).id ?? "", facts, wanted };
  });
  const byId = new Map(proxies.map((proxy) => [proxy.id, proxy]));
  const leases = leaseProviders(scene.world.engine, scene.world.providers);
  const server = createXdsServer({
    providers: leases.providers.map(counted),
    viewOf: ({ id }) => {
      const { facts } = byId.get(id) ?? assert.fail(`no proxy ${id}`);
      return leases.view(id, facts, () => scene.world.view(facts));
    },
    clock: systemClock,
    log: silentLog,
    settings: { admittedPerSecond: 0, maxNewcomers: 1_000 },
  });
  const settle = async (): Promise<void> => {
    for (let turn = 0; turn < 30; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      await server.idle();
    }
  };
  const clients = proxies.map(({ id, wanted }) => ({ wanted, client: connect(server, { variant: "delta", node: id }).client }));
  const connectAll = async (): Promise<void> => {
    for (const typeUrl of [CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE]) {
      const named = typeUrl === ENDPOINT_TYPE || typeUrl === ROUTE_TYPE;
      for (const { client, wanted } of clients) client.subscribe(typeUrl, named ? wanted.get(typeUrl) : undefined);
      await settle();
    }
  };
  /** Pushes what was put, and gives what was done for it. */
  const pushed = async (put: () => void) => {
    prepared.clear();
    for (const { client } of clients) client.seen.length = 0;
    put();
    server.push("test");
    await settle();
    const seen = clients.map(({ client }) => client.seen.map(({ typeUrl, names }) => `${shortTypeName(typeUrl)} ${names.join()}`));
    return { seen, prepared: Object.fromEntries(prepared), state: server.state() };
  };
  return { scene, connectAll, pushed };
}

describe(`a change with ${SHAPE.proxies} proxies of ${SHAPE.classes} classes`, () => {
  const { scene, connectAll, pushed } = setUp();
  beforeAll(connectAll);

  it("of one endpoint is prepared for once a class, and sent to each in one response", async () => {
    const { seen, prepared, state } = await pushed(() => scene.put(endpointEdit(1).text));
    assert.deepEqual([...new Set(seen.map((responses) => responses.length))], [1]);
    assert.equal(new Set(seen.flat()).size, 1, "all are sent the same");
    assert.ok(seen[0]?.[0]?.startsWith("eds "), `what is sent is ${seen[0]?.[0]}`);
    for (const [type, times] of Object.entries(prepared)) assert.ok(times <= SHAPE.classes, `${type} was prepared ${times} times`);
    assert.ok(state.every(({ types }) => types.length === 4 && types.every(({ inSync }) => inSync)));
  });

  it("of one route is prepared for once a class, and sent to each in one response", async () => {
    await pushed(() => scene.put(routeEdit(1).text));
    const { seen, prepared } = await pushed(() => scene.put(routeEdit(2).text));
    assert.deepEqual([...new Set(seen.flat().map((response) => response.split(" ")[0]))], ["rds"]);
    assert.deepEqual([...new Set(seen.map((responses) => responses.length))], [1]);
    for (const [type, times] of Object.entries(prepared)) assert.ok(times <= SHAPE.classes, `${type} was prepared ${times} times`);
  });

  it("of nothing is prepared for by nobody and sent to nobody", async () => {
    const { seen, prepared } = await pushed(() => {});
    assert.deepEqual([seen.flat(), prepared], [[], {}]);
  });
});
