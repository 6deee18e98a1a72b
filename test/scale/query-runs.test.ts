import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { endpointEdit, largeFileEdit, privateEdit, remarkEdit, routeEdit, type SceneShape, sceneProxies } from "../../bench/scene.ts";
import { type SceneWorld, sceneWorld } from "../../bench/scene-world.ts";
import type { ResourceSet } from "../../src/wire/encoded.ts";
import { VIRTUAL_HOST_TYPE } from "../../src/wire/type-urls.ts";

const SHAPE: SceneShape = {
  services: 1000,
  endpoints: 10,
  namespaces: 20,
  virtualServices: 200,
  destinationRules: 200,
  proxies: 200,
  classes: 1,
};

/** Queries that build and encode: what a generation costs. */
const BUILDERS = ["clusters.cluster", "endpoints.assignment", "listener", "virtualHostBody", "routeTable"];

/** How often each query ran while `work` did; those that did not run are left out. */
function runsDuring({ world }: SceneWorld, work: () => void): Readonly<Record<string, number>> {
  const before = world.engine.stats().queries;
  work();
  const after = Object.entries(world.engine.stats().queries).map(([name, { runs }]) => [name, runs - (before[name]?.runs ?? 0)] as const);
  return Object.fromEntries(after.filter(([, runs]) => runs > 0));
}

describe(`${SHAPE.proxies} identical proxies among ${SHAPE.services} services`, () => {
  const scene = sceneWorld(SHAPE);
  const [first, ...others] = sceneProxies(SHAPE);
  assert.ok(first !== undefined);
  const offers = new Map<string, ResourceSet>();
  const firstRuns = runsDuring(scene, () => scene.ask(first, (typeUrl, set) => offers.set(typeUrl, set)));

  it("the first one is generated for", () => {
    for (const name of BUILDERS) assert.ok((firstRuns[name] ?? 0) > 0, `${name} never ran: the list of builders is out of date`);
    assert.ok((firstRuns["endpoints.assignment"] ?? 0) >= SHAPE.services);
  });

  it("the others are looked up by address, and offered the very same sets", () => {
    const runs = runsDuring(scene, () => {
      for (const proxy of others)
        scene.ask(proxy, (typeUrl, set) => assert.equal(set, offers.get(typeUrl), `${proxy.name} has a set of its own of ${typeUrl}`));
    });
    assert.deepEqual(
      Object.keys(runs).filter((name) => BUILDERS.includes(name)),
      [],
    );
    for (const [name, count] of Object.entries(runs))
      assert.ok(count <= others.length, `${name} ran ${count} times for ${others.length} proxies`);
    assert.ok(Object.keys(runs).length <= 6, `more than look-ups by address: ${JSON.stringify(runs)}`);
  });

  it("asking again runs nothing", () => {
    const runs = runsDuring(scene, () => {
      for (const proxy of [first, ...others]) scene.ask(proxy);
    });
    assert.deepEqual(runs, {});
  });
});

describe(`one change among ${SHAPE.services} services with proxies in 20 namespaces`, () => {
  const shape: SceneShape = { ...SHAPE, proxies: 40, classes: 20 };
  const scene = sceneWorld(shape);
  const proxies = sceneProxies(shape);
  const askAll = (): void => {
    for (const proxy of proxies) scene.ask(proxy);
  };
  const firstRuns = runsDuring(scene, askAll);
  const runsAfter = (text: string): Readonly<Record<string, number>> =>
    runsDuring(scene, () => {
      scene.put(text);
      askAll();
    });

  it("what namespaces see alike is planned once for all of them", () => {
    assert.equal(firstRuns["clients.outlook"], shape.classes);
    for (const name of ["clusters.plan", "clusters.outboundSet", "endpoints.plans", "endpoints.set"]) {
      assert.ok((firstRuns[name] ?? 0) <= 2, `${name} ran ${firstRuns[name]} times`);
    }
  });

  it("an endpoint: the registry's view of its service, its assignment, and the one set that all namespaces share", () => {
    assert.deepEqual(runsAfter(endpointEdit(1).text), {
      "registry.declaration": 1,
      "registry.members": 1,
      "registry.endpoints": 1,
      "registry.serviceAccounts": 1,
      "endpoints.assignment": 1,
      "endpoints.set": 1,
    });
  });

  it("an endpoint of a service with subsets: an assignment for each subset", () => {
    const runs = runsAfter(largeFileEdit(shape, 2).text);
    assert.equal(runs["registry.endpoints"], 1);
    assert.equal(runs["endpoints.assignment"], 3);
    assert.equal(runs["endpoints.set"], 1);
    assert.deepEqual(
      Object.keys(runs).filter((name) => BUILDERS.includes(name)),
      ["endpoints.assignment"],
    );
  });

  it("a VirtualService: its host is built once; of all that is built, only tables are put together again", () => {
    const runs = runsAfter(routeEdit(3).text);
    assert.equal(runs.virtualHostBody, 1);
    assert.deepEqual(
      Object.keys(runs)
        .filter((name) => BUILDERS.includes(name))
        .sort(),
      ["routeTable", "virtualHostBody"],
    );
    assert.ok((runs.routeTable ?? 0) <= 2 * shape.classes, `${runs.routeTable} tables`);
    assert.deepEqual(
      Object.keys(runs).filter((name) => /^(registry|clusters|endpoints)\./.test(name)),
      [],
    );
  });

  it("a VirtualService that one namespace sees: the tables of that namespace", () => {
    const runs = runsAfter(privateEdit(shape, 4).text);
    assert.equal(runs.virtualHostBody, 1);
    assert.ok((runs.routeTable ?? 0) <= 2, `${runs.routeTable} tables`);
    assert.ok(
      Object.values(runs).every((count) => count <= 2),
      JSON.stringify(runs),
    );
  });

  it("a remark in a file of fifty objects: nothing", () => {
    scene.put(remarkEdit(shape, 5).text);
    askAll();
    assert.deepEqual(runsAfter(remarkEdit(shape, 6).text), {});
  });
});

describe(`one change among ${SHAPE.services} services with proxies in 20 namespaces that take virtual hosts one by one`, () => {
  const shape: SceneShape = { ...SHAPE, proxies: 40, classes: 20, vhds: true };
  const scene = sceneWorld(shape);
  const proxies = sceneProxies(shape);
  /** The virtual hosts that each proxy is offered. */
  const hosts = (): readonly ResourceSet["resources"][] =>
    proxies.map((proxy) => {
      let found: ResourceSet["resources"] = new Map();
      scene.ask(proxy, (typeUrl, { resources }) => {
        if (typeUrl === VIRTUAL_HOST_TYPE) found = resources;
      });
      return found;
    });
  const before = hosts();

  it("a VirtualService: its host is built once and is another resource to everybody, one for all who call it by the same names", () => {
    const { marker, text } = routeEdit(7);
    let after: typeof before = [];
    const runs = runsDuring(scene, () => {
      scene.put(text);
      after = hosts();
    });
    const changed = after.flatMap((resources, index) => [...resources.values()].filter((one) => before[index]?.get(one.name) !== one));
    assert.equal(changed.length, proxies.length);
    for (const { body } of changed) assert.ok(Buffer.from(body).includes(marker));
    assert.ok(new Set(changed).size <= 2, "as seen from its own namespace, and from elsewhere");
    assert.equal(runs.virtualHostBody, 1);
    assert.equal(runs.virtualHostRun, shape.classes, "of each namespace, the few hosts around it");
    for (const name of ["routeTablePlan", "dividedRouteTable", "routeTable", "routeTables", "plainHost"])
      assert.equal(runs[name], undefined, name);
  });
});
