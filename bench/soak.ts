import { readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { freePort } from "../test/support/ports.ts";
import { Fleet, reachesAll } from "./fleet.ts";
import { type Inspector, inspect } from "./inspector.ts";
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
  /** Collects all garbage before each sample, so that even a short soak tells what stays in the heap. */
  readonly collects?: boolean;
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
  /** Streams that the server has cut so far because they did not take what they were sent. */
  readonly cut: number;
}

interface Soak {
  readonly shape: SceneShape;
  readonly home: string;
  readonly server: MeasuredServer;
  readonly fleet: Fleet;
  readonly rude: Set<Socket>;
  /** Proxies that were served and then stopped reading; those of some rounds ago go by themselves. */
  readonly deaf: Fleet[];
  /** The same, which stay until the server cuts them: these take nothing, … */
  readonly stuck: Fleet[];
  /** … and these a few bytes at a time. */
  readonly slow: Fleet[];
  readonly inspector: Inspector | undefined;
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
const DEAF_ROUNDS = 1;
/** Less than a response takes: what such a proxy is sent stays with the server. */
const SMALL_WINDOW = 4_096;
/** What those who are not quite deaf take, and how often. */
const TRICKLE_BYTES = 64;
const TRICKLE_MS = 100;
/** Whoever has not taken a response by then is cut. */
const SEND_TIMEOUT_S = 3;
const WARM_UP = 0.3;
const SETTLE_MS = 250;

/**
 * Churn without end: routes and endpoints change, proxies come back or stop reading, strangers send garbage or say nothing. What the server holds is
 * sampled in each round, in the same state of the mesh, so that anything that stays behind shows.
 */
export async function soak({ shape, seconds, leastRounds = 1, collects = false, emit }: SoakOptions): Promise<readonly Sample[]> {
  const home = await mkdtemp(join(tmpdir(), "soak-"));
  await writeScene(home, shape);
  const port = collects ? await freePort() : undefined;
  const server = await startServer(home, {
    PILOT_XDS_SEND_TIMEOUT: `${SEND_TIMEOUT_S}s`,
    ...(port !== undefined && { NODE_OPTIONS: `--inspect=127.0.0.1:${port}` }),
  });
  const fleet = new Fleet(server.grpcPort);
  const inspector = port === undefined ? undefined : await inspect(port);
  const running: Soak = { shape, home, server, fleet, rude: new Set(), deaf: [], stuck: [], slow: [], inspector };
  const samples: Sample[] = [];
  const stopTrickling = trickle(running.slow);
  try {
    await fleet.connect(sceneProxies(shape));
    const start = systemClock.monotonic();
    for (let round = 1; round <= leastRounds || systemClock.monotonic() - start < seconds * 1000; round++) {
      await churn(running, round);
      samples.push({ seconds: (systemClock.monotonic() - start) / 1000, ...(await sample(running)) });
    }
    report(samples, { shape, seconds, emit });
    return samples;
  } finally {
    stopTrickling();
    inspector?.close();
    for (const socket of running.rude) socket.destroy();
    for (const one of [...running.deaf, ...running.stuck, ...running.slow]) one.close();
    fleet.close();
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
}

async function churn({ shape, home, server, fleet, rude, deaf, stuck, slow }: Soak, round: number): Promise<void> {
  for (const group of [deaf, stuck, slow]) {
    const listeners = new Fleet(server.grpcPort, { window: SMALL_WINDOW });
    await listeners.connect(sceneProxies(shape).slice(0, DEAF));
    listeners.stall();
    group.push(listeners);
  }
  if (deaf.length > DEAF_ROUNDS) deaf.shift()?.close();
  // Those whom the server has cut have nothing left to close.
  for (const group of [stuck, slow]) group.splice(0, group.length, ...group.filter(({ lost }) => lost === undefined));
  for (const edit of [routeEdit(round), endpointEdit(round)]) {
    await fleet.observe(await replaceFile(home, edit), reachesAll(edit));
  }
  for (const socket of rude) socket.destroy();
  rude.clear();
  for (let i = 0; i < RUDE; i++) rude.add(rudeClient(server.grpcPort, i));
  await fleet.replace(REPLACED);
}

/** Has all of them take a few bytes now and then. Gives what ends it. */
function trickle(groups: readonly Fleet[]): () => void {
  let over = false;
  const again = (): void => {
    if (over) return;
    for (const group of groups) group.trickle(TRICKLE_BYTES);
    systemClock.after(TRICKLE_MS, again);
  };
  again();
  return () => {
    over = true;
  };
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

async function sample({ server: { pid, metricsUrl }, inspector }: Soak): Promise<Omit<Sample, "seconds">> {
  const handles = await settledHandles(pid);
  if (inspector !== undefined) {
    await inspector.collect();
    // It is told of a collection a little later.
    await systemClock.sleep(SETTLE_MS);
  }
  const text = await (await fetch(metricsUrl)).text();
  const metric = (name: string): number => Number(new RegExp(`^${name} (\\S+)`, "m").exec(text)?.[1] ?? Number.NaN);
  return {
    rssMb: memoryMb(pid).rss,
    // 0 is what a server says that has not collected its garbage yet.
    heapMb: metric("istiod_heap_live_bytes") / (1024 * 1024) || Number.NaN,
    handles,
    nodes: metric("istiod_engine_nodes"),
    edges: metric("istiod_engine_edges"),
    cut: metric("pilot_xds_write_timeout"),
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
      cut: samples.at(-1)?.cut ?? 0,
    };
    emit({ bench, value, unit, limit, details });
  }
}

/** What grew, in sentences; nothing if all is level. */
export function soakFaults(samples: readonly Sample[]): readonly string[] {
  return WATCHED.flatMap((watched) => {
    const { slope: value, error, verdict } = judge(levelOf(samples), watched);
    if (verdict === "not measured") return [`${watched.bench}: was not measured`];
    if (verdict !== "grows") return [];
    return [`${watched.bench}: grows by ${round(value)} ± ${round(error)} ${watched.unit}; ${watched.limit} would be level`];
  });
}

/** What may grow, and would have to be watched for longer. */
export const soakDoubts = (samples: readonly Sample[]): readonly string[] =>
  WATCHED.filter((watched) => judge(levelOf(samples), watched).verdict === "too short to tell").map(({ bench }) => bench);

type Verdict = "level" | "grows" | "too short to tell" | "not measured";

/** What could be chance is not held against anybody, nor what a process does in its first minutes. */
function judge(level: readonly Sample[], { limit, of, seconds }: Watched): { slope: number; error: number; verdict: Verdict } {
  const found = trend(level.map((sample) => [sample.seconds / 3600, of(sample)]));
  const lasted = (level.at(-1)?.seconds ?? 0) - (level[0]?.seconds ?? 0);
  if (!Number.isFinite(found.slope)) return { ...found, verdict: "not measured" };
  const grows = found.slope - 2 * found.error > limit;
  return { ...found, verdict: !grows ? "level" : lasted < seconds ? "too short to tell" : "grows" };
}

/** The first part of a soak warms up: caches fill and code is compiled. */
const levelOf = (samples: readonly Sample[]): readonly Sample[] => samples.slice(Math.floor(samples.length * WARM_UP));
