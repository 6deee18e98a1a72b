import { readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { Fleet, reachesAll } from "./fleet.ts";
import { type Emit, type Measurement, quantile, round } from "./measurement.ts";
import { memoryMb } from "./process-usage.ts";
import { endpointEdit, replaceFile, routeEdit, type SceneShape, sceneProxies, writeScene } from "./scene.ts";
import { type MeasuredServer, startServer } from "./server.ts";
import { trend } from "./trend.ts";

export interface SoakOptions {
  readonly shape: SceneShape;
  readonly seconds: number;
  /** On a slow machine it takes longer, so that there are so many rounds. */
  readonly leastRounds?: number;
  readonly emit: Emit;
}

/** What the server holds at a moment. */
export interface Sample {
  readonly seconds: number;
  readonly rssMb: number;
  /** What the last full collection left of its heap. */
  readonly heapMb: number;
  readonly handles: number;
  readonly nodes: number;
  readonly edges: number;
}

interface Soak {
  readonly shape: SceneShape;
  readonly home: string;
  readonly server: MeasuredServer;
  readonly fleet: Fleet;
  readonly rude: Set<Socket>;
  /** Proxies that were served and then stopped reading; the oldest are left to the server to find out. */
  readonly deaf: Fleet[];
}

interface Watched {
  readonly bench: string;
  readonly unit: Measurement["unit"];
  /** May grow by this much an hour and still be called level: the rest of what a heap and a system do by themselves. */
  readonly limit: number;
  readonly of: (sample: Sample) => number;
  /** How long it has to be watched before it can be said to grow: code goes on being compiled for minutes, and takes memory. */
  readonly seconds: number;
}

const WATCHED: readonly Watched[] = [
  { bench: "soak", unit: "MB/h", limit: 20, of: ({ rssMb }) => rssMb, seconds: 900 },
  { bench: "soak-heap", unit: "MB/h", limit: 10, of: ({ heapMb }) => heapMb, seconds: 900 },
  { bench: "soak-handles", unit: "handles/h", limit: 10, of: ({ handles }) => handles, seconds: 0 },
  { bench: "soak-results", unit: "results/h", limit: 500, of: ({ nodes }) => nodes, seconds: 0 },
];
/** Connections that are replaced in each round, of those that behave and of those that do not. */
const REPLACED = 5;
const RUDE = 5;
/** Proxies that stop reading in each round, and for how many rounds they are left alone. */
const DEAF = 2;
const DEAF_ROUNDS = 3;
const SMALL_WINDOW = 65_535;
const WARM_UP = 0.3;
const SETTLE_MS = 250;

/**
 * Churn without end: routes and endpoints change, proxies come back or stop reading, strangers send garbage or say nothing. What the server holds is
 * sampled in each round, in the same state of the mesh, so that anything that stays behind shows.
 */
export async function soak({ shape, seconds, leastRounds = 1, emit }: SoakOptions): Promise<readonly Sample[]> {
  const home = await mkdtemp(join(tmpdir(), "soak-"));
  await writeScene(home, shape);
  const server = await startServer(home);
  const fleet = new Fleet(server.grpcPort);
  const running: Soak = { shape, home, server, fleet, rude: new Set(), deaf: [] };
  const samples: Sample[] = [];
  try {
    await fleet.connect(sceneProxies(shape));
    const start = systemClock.monotonic();
    for (let round = 1; round <= leastRounds || systemClock.monotonic() - start < seconds * 1000; round++) {
      await churn(running, round);
      samples.push({ seconds: (systemClock.monotonic() - start) / 1000, ...(await sample(server)) });
    }
    report(samples, { shape, seconds, emit });
    return samples;
  } finally {
    for (const socket of running.rude) socket.destroy();
    for (const one of running.deaf) one.close();
    fleet.close();
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
}

async function churn({ shape, home, server, fleet, rude, deaf }: Soak, round: number): Promise<void> {
  const listeners = new Fleet(server.grpcPort, { window: SMALL_WINDOW });
  await listeners.connect(sceneProxies(shape).slice(0, DEAF));
  listeners.stall();
  deaf.push(listeners);
  if (deaf.length > DEAF_ROUNDS) deaf.shift()?.close();
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
  const handles = await settledHandles(pid);
  const text = await (await fetch(metricsUrl)).text();
  const metric = (name: string): number => Number(new RegExp(`^${name} (\\S+)`, "m").exec(text)?.[1] ?? Number.NaN);
  return {
    rssMb: memoryMb(pid).rss,
    heapMb: metric("istiod_heap_live_bytes") / (1024 * 1024),
    handles,
    nodes: metric("istiod_engine_nodes"),
    edges: metric("istiod_engine_edges"),
  };
}

/** What was closed at the other end is closed here a little later: how many there are when none has gone for a while. */
async function settledHandles(pid: number): Promise<number> {
  const count = (): number => readdirSync(`/proc/${pid}/fd`).length;
  for (let last = Number.POSITIVE_INFINITY, now = count(); ; [last, now] = [now, count()]) {
    if (now >= last) return now;
    await systemClock.sleep(SETTLE_MS);
  }
}

function report(samples: readonly Sample[], { shape, seconds, emit }: SoakOptions): void {
  const level = levelOf(samples);
  for (const watched of WATCHED) {
    const { bench, unit, limit, of } = watched;
    const { slope: value, error, verdict } = judge(level, watched);
    const values = level.map(of);
    const details = {
      ...{ services: shape.services, streams: shape.proxies, seconds, rounds: samples.length },
      ...{ error, first: values[0] ?? 0, p50: quantile(values, 0.5), last: values.at(-1) ?? 0, verdict },
    };
    emit({ bench, value, unit, limit, details });
  }
}

/** What grew, in sentences; nothing if all is level. */
export function soakFaults(samples: readonly Sample[]): readonly string[] {
  return WATCHED.flatMap((watched) => {
    const { slope: value, error, verdict } = judge(levelOf(samples), watched);
    if (verdict !== "grows") return [];
    return [`${watched.bench}: grows by ${round(value)} ± ${round(error)} ${watched.unit}; ${watched.limit} would be level`];
  });
}

/** What may grow, and would have to be watched for longer. */
export const soakDoubts = (samples: readonly Sample[]): readonly string[] =>
  WATCHED.filter((watched) => judge(levelOf(samples), watched).verdict === "too short to tell").map(({ bench }) => bench);

type Verdict = "level" | "grows" | "too short to tell";

/** What could be chance is not held against anybody, nor what a process does in its first minutes. */
function judge(level: readonly Sample[], { limit, of, seconds }: Watched): { slope: number; error: number; verdict: Verdict } {
  const found = trend(level.map((sample) => [sample.seconds / 3600, of(sample)]));
  const lasted = (level.at(-1)?.seconds ?? 0) - (level[0]?.seconds ?? 0);
  const grows = found.slope - 2 * found.error > limit;
  return { ...found, verdict: !grows ? "level" : lasted < seconds ? "too short to tell" : "grows" };
}

/** The first part of a soak warms up: caches fill and code is compiled. */
const levelOf = (samples: readonly Sample[]): readonly Sample[] => samples.slice(Math.floor(samples.length * WARM_UP));
