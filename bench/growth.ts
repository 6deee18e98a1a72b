import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { Fleet, reachesAll } from "./fleet.ts";
import { type Emit, median, quantile } from "./measurement.ts";
import { cpuMs, memoryMb } from "./process-usage.ts";
import { endpointEdit, replaceFile, routeEdit, type SceneEdit, type SceneShape, sceneProxies, writeScene } from "./scene.ts";
import { type MeasuredServer, startServer } from "./server.ts";

/** One curve: how a cost grows with a size. */
export interface Curve {
  readonly axis: string;
  readonly cost: string;
  readonly unit: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

const BASE: SceneShape = {
  services: 500,
  endpoints: 5,
  namespaces: 10,
  virtualServices: 100,
  destinationRules: 100,
  proxies: 100,
  classes: 10,
};

/** Sizes that are tried; all else stays as in the base. */
const AXES: Readonly<Record<string, readonly SceneShape[]>> = {
  services: [250, 500, 1000, 2000].map((services) => ({ ...BASE, services })),
  "endpoints of each service": [2, 5, 10, 20].map((endpoints) => ({ ...BASE, endpoints })),
  proxies: [50, 100, 200, 400].map((proxies) => ({ ...BASE, proxies })),
};
const SIZE: Readonly<Record<string, (shape: SceneShape) => number>> = {
  services: ({ services }) => services,
  "endpoints of each service": ({ endpoints }) => endpoints,
  proxies: ({ proxies }) => proxies,
};
const RATES = [1, 2, 5, 10];
const RATE_SECONDS = 5;
const CHANGES = 3;

/** What is read off one scene. */
interface Costs {
  readonly "start to ready": number;
  readonly "CPU until all proxies are initialised": number;
  readonly "CPU of an endpoint change": number;
  readonly "CPU of a route change": number;
  readonly "resident memory": number;
}

/** Measures the curves, one scene after the other. */
export async function measureGrowth(emit: Emit): Promise<readonly Curve[]> {
  const curves: Curve[] = [];
  for (const [axis, shapes] of Object.entries(AXES)) {
    const rows: { readonly x: number; readonly costs: Costs }[] = [];
    for (const shape of shapes) rows.push({ x: SIZE[axis]?.(shape) ?? 0, costs: await inScene(shape, costsOf) });
    for (const cost of [
      "start to ready",
      "CPU until all proxies are initialised",
      "CPU of an endpoint change",
      "CPU of a route change",
    ] as const)
      curves.push({ axis, cost, unit: "ms", points: rows.map(({ x, costs }) => [x, costs[cost]]) });
    curves.push({ axis, cost: "resident memory", unit: "MB", points: rows.map(({ x, costs }) => [x, costs["resident memory"]]) });
  }
  curves.push(await inScene(BASE, lagByRate));
  for (const { axis, cost, unit, points } of curves) {
    const details = Object.fromEntries(points.map(([x, y]) => [`at_${x}`, y]));
    emit({ bench: "growth", value: exponent(points), unit: "exponent", limit: LINEAR, details: { axis, cost, of: unit, ...details } });
  }
  return curves;
}

/** A cost that grows with the size to the power of this, or less, is called linear: what a few points on a shared machine can tell. */
const LINEAR = 1.15;

/** By which power of x the y grow: the slope of the line through the logarithms. */
export function exponent(points: readonly (readonly [x: number, y: number])[]): number {
  const logs = points.map(([x, y]) => [Math.log(x), Math.log(Math.max(y, 0.1))] as const);
  const [mx, my] = [0, 1].map((at) => logs.reduce((sum, point) => sum + (point[at] ?? 0), 0) / Math.max(1, logs.length));
  const spread = logs.reduce((sum, [x]) => sum + (x - (mx ?? 0)) ** 2, 0);
  return spread === 0 ? 0 : logs.reduce((sum, [x, y]) => sum + (x - (mx ?? 0)) * (y - (my ?? 0)), 0) / spread;
}

interface Stage {
  readonly shape: SceneShape;
  readonly home: string;
  readonly server: MeasuredServer;
  readonly fleet: Fleet;
}

async function inScene<T>(shape: SceneShape, measure: (stage: Stage) => Promise<T>): Promise<T> {
  const home = await mkdtemp(join(tmpdir(), "growth-"));
  await writeScene(home, shape);
  const server = await startServer(home);
  const fleet = new Fleet(server.grpcPort);
  try {
    return await measure({ shape, home, server, fleet });
  } finally {
    fleet.close();
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
}

async function costsOf({ shape, home, server, fleet }: Stage): Promise<Costs> {
  const before = cpuMs(server.pid);
  await fleet.connect(sceneProxies(shape));
  await fleet.quiet();
  const init = cpuMs(server.pid) - before;
  const change = async (edit: (step: number) => SceneEdit): Promise<number> => {
    const used: number[] = [];
    for (let step = 1; step <= CHANGES; step++) {
      const start = cpuMs(server.pid);
      const next = edit(step);
      await fleet.observe(await replaceFile(home, next), reachesAll(next));
      used.push(cpuMs(server.pid) - start);
    }
    return median(used);
  };
  return {
    "start to ready": server.readyMs,
    "CPU until all proxies are initialised": init,
    "CPU of an endpoint change": await change(endpointEdit),
    "CPU of a route change": await change(routeEdit),
    "resident memory": memoryMb(server.pid).rss,
  };
}

/** How long a change takes to the last proxy, at more and more changes a second. */
async function lagByRate({ shape, home, fleet }: Stage): Promise<Curve> {
  await fleet.connect(sceneProxies(shape));
  await fleet.quiet();
  const points: (readonly [number, number])[] = [];
  let step = 100;
  for (const rate of RATES) {
    const lags: number[] = [];
    for (let turn = 0; turn < rate * RATE_SECONDS; turn++) {
      const edit = routeEdit(step++);
      const start = systemClock.monotonic();
      const { times } = await fleet.observe(await replaceFile(home, edit), reachesAll(edit), 0);
      lags.push(times.at(-1) ?? 0);
      await systemClock.sleep(Math.max(0, 1000 / rate - (systemClock.monotonic() - start)));
    }
    points.push([rate, quantile(lags, 0.5)]);
  }
  return { axis: "changes a second", cost: "time to the last proxy", unit: "ms", points };
}
