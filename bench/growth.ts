import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { churn } from "./churn.ts";
import { Fleet, reachesAll } from "./fleet.ts";
import { type Emit, type Measurement, median } from "./measurement.ts";
import { cpuMs, memoryMb } from "./process-usage.ts";
import { endpointEdit, replaceFile, routeEdit, type SceneEdit, type SceneShape, sceneProxies, writeScene } from "./scene.ts";
import { type MeasuredServer, startServer } from "./server.ts";
import { trend } from "./trend.ts";

/** One curve: how a cost grows with a size. */
export interface Curve {
  readonly axis: string;
  readonly cost: string;
  readonly unit: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** How much is measured: the scene that all sizes but one are of, the sizes that are tried, and how often each thing is repeated. */
export interface GrowthExtent {
  readonly base: SceneShape;
  readonly services: readonly number[];
  readonly endpoints: readonly number[];
  readonly proxies: readonly number[];
  /** Changes a second, which do not wait for one another, each for so long. */
  readonly rates: readonly number[];
  readonly rateSeconds: number;
  readonly starts: number;
  readonly changes: number;
}

export const FULL_GROWTH: GrowthExtent = {
  base: { services: 500, endpoints: 5, namespaces: 10, virtualServices: 100, destinationRules: 100, proxies: 100, classes: 10 },
  services: [250, 500, 1000, 2000],
  endpoints: [2, 5, 10, 20],
  proxies: [50, 100, 200, 400, 1000],
  rates: [1, 2, 5, 10, 20, 40],
  rateSeconds: 8,
  starts: 3,
  changes: 15,
};

/** Just large enough that every curve has points. */
export const QUICK_GROWTH: GrowthExtent = {
  base: { services: 20, endpoints: 2, namespaces: 2, virtualServices: 4, destinationRules: 4, proxies: 4, classes: 2 },
  services: [20, 40],
  endpoints: [2, 4],
  proxies: [4, 8],
  rates: [5, 20],
  rateSeconds: 1,
  starts: 1,
  changes: 1,
};

/** What is read off one scene. */
const COSTS = {
  "start to ready": "ms",
  "CPU until all proxies are initialised": "ms",
  "CPU of an endpoint change": "ms",
  "CPU of a route change": "ms",
  "resident memory": "MB",
} as const;
type Costs = Readonly<Record<keyof typeof COSTS, number>>;

/** A cost that grows with the size to the power of this, or less, is called linear: what a few points on a shared machine can tell. */
const LINEAR = 1.15;

/** Measures the curves, one scene after the other. */
export async function measureGrowth(extent: GrowthExtent, emit: Emit): Promise<readonly Curve[]> {
  const curves: Curve[] = [];
  const add = (curve: Curve): void => {
    curves.push(curve);
    emit(measurementOf(curve));
  };
  for (const [axis, size] of [
    ["services", "services"],
    ["endpoints of each service", "endpoints"],
    ["proxies", "proxies"],
  ] as const) {
    const rows: { readonly x: number; readonly costs: Costs }[] = [];
    for (const x of extent[size]) rows.push({ x, costs: await inScene({ ...extent.base, [size]: x }, extent, costsOf) });
    for (const [cost, unit] of Object.entries(COSTS) as readonly [keyof Costs, string][])
      add({ axis, cost, unit, points: rows.map(({ x, costs }) => [x, costs[cost]]) });
  }
  for (const curve of await inScene(extent.base, extent, byRate)) add(curve);
  return curves;
}

function measurementOf({ axis, cost, unit, points }: Curve): Measurement {
  const { power, error } = growthOf(points);
  const details = Object.fromEntries(points.map(([x, y]) => [`at_${x}`, y]));
  return { bench: "growth", value: power, unit: "exponent", limit: LINEAR, details: { axis, cost, of: unit, error, ...details } };
}

/** The curves that grow faster than is called linear, by more than may be chance, in sentences. */
export function growthFaults(curves: readonly Curve[]): readonly string[] {
  return curves.flatMap(({ axis, cost, points }) => {
    const { power, error } = growthOf(points);
    if (power - error <= LINEAR) return [];
    return [`${cost} grows with ${axis} to the power of ${power.toFixed(2)} ± ${error.toFixed(2)}: more than ${LINEAR}`];
  });
}

/** By which power of x the y grow, and how sure that is: the slope of the line through the logarithms, and its standard error. */
export function growthOf(points: Curve["points"]): { readonly power: number; readonly error: number } {
  const { slope: power, error } = trend(points.map(([x, y]) => [Math.log(x), Math.log(Math.max(y, 0.1))] as const));
  return { power, error };
}

interface Stage {
  readonly shape: SceneShape;
  readonly extent: GrowthExtent;
  readonly home: string;
  readonly server: MeasuredServer;
  readonly readyMs: number;
  readonly fleet: Fleet;
}

async function inScene<T>(shape: SceneShape, extent: GrowthExtent, measure: (stage: Stage) => Promise<T>): Promise<T> {
  const home = await mkdtemp(join(tmpdir(), "growth-"));
  await writeScene(home, shape);
  const readies: number[] = [];
  let server = await startServer(home);
  for (readies.push(server.readyMs); readies.length < extent.starts; readies.push(server.readyMs)) {
    await server.stop();
    server = await startServer(home);
  }
  const fleet = new Fleet(server.grpcPort);
  try {
    return await measure({ shape, extent, home, server, readyMs: median(readies), fleet });
  } finally {
    fleet.close();
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
}

async function costsOf({ shape, extent: { changes }, home, server, readyMs, fleet }: Stage): Promise<Costs> {
  const before = cpuMs(server.pid);
  await fleet.connect(sceneProxies(shape));
  await fleet.quiet();
  const init = cpuMs(server.pid) - before;
  // All together, since the system counts in steps of 10 ms.
  const change = async (edit: (step: number) => SceneEdit): Promise<number> => {
    const start = cpuMs(server.pid);
    for (let turn = 0; turn < changes; turn++) {
      const next = edit(nextStep());
      await fleet.observe(await replaceFile(home, next), reachesAll(next));
    }
    return (cpuMs(server.pid) - start) / changes;
  };
  return {
    "start to ready": readyMs,
    "CPU until all proxies are initialised": init,
    "CPU of an endpoint change": await change(endpointEdit),
    "CPU of a route change": await change(routeEdit),
    "resident memory": memoryMb(server.pid).rss,
  };
}

/** How far proxies are behind, and what a change costs, at more and more changes a second that are made whether or not those before them have come. */
async function byRate({ shape, extent, home, server, fleet }: Stage): Promise<readonly Curve[]> {
  await fleet.connect(sceneProxies(shape));
  const lags: (readonly [number, number])[] = [];
  const costs: (readonly [number, number])[] = [];
  for (const rate of extent.rates) {
    await fleet.quiet();
    const start = cpuMs(server.pid);
    const { p50, changes } = await churn({ fleet, home }, { rate, seconds: extent.rateSeconds }, nextStep);
    await fleet.quiet();
    lags.push([rate, p50]);
    costs.push([rate, (cpuMs(server.pid) - start) / changes]);
  }
  const axis = "changes a second";
  return [
    { axis, cost: "lag of a change, p50", unit: "ms", points: lags },
    { axis, cost: "CPU of a change", unit: "ms", points: costs },
  ];
}

/** Steps are numbered through the whole process, so that no change repeats an earlier one. */
let lastStep = 0;
const nextStep = (): number => {
  lastStep += 1;
  return lastStep;
};
