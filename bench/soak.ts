import { readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { Fleet, reachesAll } from "./fleet.ts";
import { type Emit, quantile } from "./measurement.ts";
import { memoryMb } from "./process-usage.ts";
import { endpointEdit, replaceFile, routeEdit, type SceneShape, sceneProxies, writeScene } from "./scene.ts";
import { type MeasuredServer, startServer } from "./server.ts";

export interface SoakOptions {
  readonly shape: SceneShape;
  readonly seconds: number;
  readonly emit: Emit;
}

/** What the server holds at a moment. */
export interface Sample {
  readonly seconds: number;
  readonly rssMb: number;
  readonly handles: number;
  readonly nodes: number;
  readonly edges: number;
}

interface Soak {
  readonly home: string;
  readonly server: MeasuredServer;
  readonly fleet: Fleet;
  readonly rude: Set<Socket>;
}

/** Memory may grow by this much an hour and still be called level: the rest of what a heap does by itself. */
const SLOPE_LIMIT = 20;
/** Connections that are replaced in each round, of those that behave and of those that do not. */
const REPLACED = 5;
const RUDE = 5;
/** The first part of a soak warms up: caches fill and code is compiled. */
const WARM_UP = 0.3;

/**
 * Churn without end: routes and endpoints change, proxies come back, strangers send garbage or never read. What the server holds is sampled in each
 * round, in the same state of the mesh, so that anything that stays behind shows.
 */
export async function soak({ shape, seconds, emit }: SoakOptions): Promise<readonly Sample[]> {
  const home = await mkdtemp(join(tmpdir(), "soak-"));
  await writeScene(home, shape);
  const server = await startServer(home);
  const fleet = new Fleet(server.grpcPort);
  const running: Soak = { home, server, fleet, rude: new Set() };
  const samples: Sample[] = [];
  try {
    await fleet.connect(sceneProxies(shape));
    const start = systemClock.monotonic();
    for (let round = 1; systemClock.monotonic() - start < seconds * 1000; round++) {
      await churn(running, round);
      samples.push({ seconds: (systemClock.monotonic() - start) / 1000, ...(await sample(server)) });
    }
    report(samples, { shape, seconds, emit });
    return samples;
  } finally {
    for (const socket of running.rude) socket.destroy();
    fleet.close();
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
}

async function churn({ home, server, fleet, rude }: Soak, round: number): Promise<void> {
  for (const edit of [routeEdit(round), endpointEdit(round)]) {
    await fleet.observe(await replaceFile(home, edit), reachesAll(edit));
  }
  for (const socket of rude) socket.destroy();
  rude.clear();
  for (let i = 0; i < RUDE; i++) rude.add(rudeClient(server.grpcPort, i));
  await fleet.replace(REPLACED);
}

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/** One that says nothing, one that sends garbage, one that begins to speak HTTP/2 and stops; none of them reads. */
function rudeClient(port: number, kind: number): Socket {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  socket.pause();
  if (kind % 3 === 1) socket.write(Buffer.alloc(10_000, kind));
  if (kind % 3 === 2) socket.write(PREFACE);
  return socket;
}

async function sample({ pid, metricsUrl }: MeasuredServer): Promise<Omit<Sample, "seconds">> {
  const text = await (await fetch(metricsUrl)).text();
  const metric = (name: string): number => Number(new RegExp(`^${name} (\\S+)`, "m").exec(text)?.[1] ?? Number.NaN);
  return {
    rssMb: memoryMb(pid).rss,
    handles: readdirSync(`/proc/${pid}/fd`).length,
    nodes: metric("istiod_engine_nodes"),
    edges: metric("istiod_engine_edges"),
  };
}

function report(samples: readonly Sample[], { shape, seconds, emit }: SoakOptions): void {
  const level = samples.slice(Math.floor(samples.length * WARM_UP));
  const last = level.at(-1);
  emit({
    bench: "soak",
    value: slope(level.map(({ seconds: at, rssMb }) => [at / 3600, rssMb])),
    unit: "MB/h",
    limit: SLOPE_LIMIT,
    details: {
      services: shape.services,
      streams: shape.proxies,
      seconds,
      rounds: samples.length,
      rss_mb: last?.rssMb ?? 0,
      rss_p50_mb: quantile(
        level.map(({ rssMb }) => rssMb),
        0.5,
      ),
      handles_first: level[0]?.handles ?? 0,
      handles_last: last?.handles ?? 0,
      nodes_first: level[0]?.nodes ?? 0,
      nodes_last: last?.nodes ?? 0,
    },
  });
}

/** Least squares: how much y grows for each x. */
export function slope(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (pick: 0 | 1): number => points.reduce((sum, point) => sum + point[pick], 0) / Math.max(1, points.length);
  const [mx, my] = [mean(0), mean(1)];
  const spread = points.reduce((sum, [x]) => sum + (x - mx) ** 2, 0);
  return spread === 0 ? 0 : points.reduce((sum, [x, y]) => sum + (x - mx) * (y - my), 0) / spread;
}
