import { describe, expect, it, onTestFinished } from "vitest";
import { manualClock } from "../../test/support/manual-clock.ts";
import { meshFrom } from "../../test/support/mesh-from.ts";
import { holds } from "../../test/support/wait.ts";
import { silentLog } from "../base/log.ts";
import type { World } from "../generate/world.ts";
import type { ProxyView } from "../model/proxy.ts";
import { listenerRoutes } from "../wire/listener-routes.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "../wire/type-urls.ts";
import { createNameSets, type NameSets } from "../xds/name-sets.ts";
import { prepareAhead } from "./prepare-ahead.ts";

const SERVICES = 40;

const service = (index: number): string => `
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: s${index}, namespace: ns-${index % 4}}
spec:
  hosts: [s${index}.example.com]
  addresses: [10.0.0.${index + 1}]
  ports: [{number: 80, name: http, protocol: HTTP}]
  location: MESH_INTERNAL
  resolution: STATIC
  endpoints: [{address: 10.1.0.${index + 1}}]
`;

/** A mesh nobody is connected to, and what its control plane would do for itself. */
async function setUp({ proxiesAwaited = false } = {}) {
  const mesh = await meshFrom(
    ["proxies: [{name: web, namespace: ns-1, ip: 10.2.0.1}]", ...Array.from({ length: SERVICES }, (_, index) => service(index))].join(
      "\n---\n",
    ),
  );
  const [web] = mesh.proxies.map(({ view }) => view);
  if (web === undefined) throw new Error("a proxy is declared");
  const [clock, names] = [manualClock(), createNameSets()];
  const connected: string[] = [];
  const stop = prepareAhead({
    ...{ clock, log: silentLog, world: mesh.world, names, loaded: Promise.resolve(), proxiesAwaited },
    xds: { nodes: () => connected },
    mesh: { current: { mesh: { rootNamespace: "istio-system" } } },
  });
  onTestFinished(stop);
  await Promise.resolve();
  const { engine } = mesh.world;
  engine.sweep();
  const before = engine.stats().runs;
  return { world: mesh.world, engine, clock, names, connected, web, runs: () => engine.stats().runs - before };
}

/** Asks for what a sidecar asks for; gives the names of all it was given. */
function ask(world: World, view: ProxyView, names: NameSets): readonly string[] {
  const offered = (typeUrl: string, wanted?: readonly string[]) => {
    const provider = world.providers.find((one) => one.typeUrl === typeUrl);
    const set = provider?.offered(view, { wildcard: wanted === undefined, names: names.of(wanted ?? []) });
    return [...(set?.resources.values() ?? [])];
  };
  const [clusters, listeners] = [offered(CLUSTER_TYPE), offered(LISTENER_TYPE)];
  const tables = offered(
    ROUTE_TYPE,
    listeners.flatMap(({ body }) => listenerRoutes(body)),
  );
  const assignments = offered(
    ENDPOINT_TYPE,
    clusters.map(({ name }) => name),
  );
  return [clusters, listeners, tables, assignments].flatMap((resources) => resources.map(({ name, version }) => `${name} ${version}`));
}

describe("what a first sidecar needs", () => {
  it("is worked out while nobody is connected, and what a sidecar is given is the same", async () => {
    const [alone, asked] = [await setUp(), await setUp()];
    alone.clock.advance(2_999);
    expect(alone.runs()).toBe(0);
    const wanted = ask(asked.world, asked.web, asked.names);
    const cost = asked.runs();
    alone.clock.advance(1);
    await holds(() => expect(alone.runs()).toBeGreaterThan(cost * 0.8));
    const prepared = alone.runs();
    expect(ask(alone.world, alone.web, alone.names)).toEqual(wanted);
    expect(alone.runs() - prepared).toBeLessThan(cost * 0.2);
  });

  it.each([
    [
      "somebody is connected",
      async () => {
        const one = await setUp();
        one.connected.push("web");
        return one;
      },
    ],
    ["proxies of before a restart are awaited", () => setUp({ proxiesAwaited: true })],
  ])("is not worked out where %s", async (_, set) => {
    const { clock, runs } = await set();
    clock.advance(10_000);
    expect(runs()).toBe(0);
  });

  it("is held until proxies have been connected for a while", async () => {
    const { engine, clock, connected, runs } = await setUp();
    clock.advance(3_000);
    await holds(() => expect(runs()).toBeGreaterThan(SERVICES));
    engine.sweep();
    const { nodes } = engine.stats();
    clock.advance(60_000);
    engine.sweep();
    expect(engine.stats().nodes).toBe(nodes);
    connected.push("web");
    clock.advance(10_000);
    engine.sweep();
    expect(engine.stats().nodes).toBe(nodes);
    clock.advance(10_000);
    engine.sweep();
    expect(engine.stats().nodes).toBeLessThan(nodes / 2);
  });
});
