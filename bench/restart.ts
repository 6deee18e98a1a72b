import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { type Comeback, Fleet } from "./fleet.ts";
import { type Emit, median } from "./measurement.ts";
import { cpuMs, memoryMb } from "./process-usage.ts";
import { type SceneShape, sceneProxies, writeScene } from "./scene.ts";
import { type MeasuredServer, receiptsKept, startServer } from "./server.ts";

/** Nothing is to be sent again, and all are to be served, for so little. */
const LIMITS = { resentMb: 0, lastMs: 2_000, cpuS: 0.5 } as const;
const MB = 1024 * 1024;
/** A server that used less than this in a second has done what a restart brings with it. */
const IDLE = { cpuMs: 250, ms: 1_000 } as const;

interface Restart extends Comeback {
  readonly readyMs: number;
  readonly cpuMs: number;
  readonly clientCpuMs: number;
  readonly rssMb: number;
}

/**
 * Kills a server without a word and starts it anew with the same files while its proxies come back to it with what they hold. Each restart is of a server of its
 * own; of each figure the middle one counts. When the last is served depends on how long chance lets him wait before he calls again, and not on what the restart costs.
 */
export async function measureRestart(
  shape: SceneShape,
  { restarts, emit }: { readonly restarts: number; readonly emit: Emit },
): Promise<void> {
  const runs: Restart[] = [];
  while (runs.length < restarts) runs.push(await restarted(shape));
  const middleBy = (figure: (run: Restart) => number): Restart | undefined =>
    runs.toSorted((a, b) => figure(a) - figure(b))[Math.floor(runs.length / 2)];
  const lastServed = (run: Restart): number => run.times.at(-1) ?? 0;
  const [middle, served] = [middleBy((run) => run.cpuMs), middleBy(lastServed)];
  if (middle === undefined || served === undefined) return;
  const details = {
    ...{ services: shape.services, endpoints: shape.endpoints, streams: shape.proxies, classes: shape.classes, restarts },
    answered: middle.answered,
    ready: middle.readyMs,
  };
  emit({ bench: "restart-resent", value: Math.max(...runs.map(({ bytes }) => bytes)) / MB, unit: "MB", limit: LIMITS.resentMb, details });
  emit({
    bench: "restart-last-served",
    value: lastServed(served),
    unit: "ms",
    limit: LIMITS.lastMs,
    details: { ...details, p50: median(served.times), slowest: Math.max(...runs.map(lastServed)) },
  });
  const cpus = runs.map((run) => run.cpuMs / 1000);
  emit({
    bench: "restart-cpu",
    value: middle.cpuMs / 1000,
    unit: "CPU s",
    limit: LIMITS.cpuS,
    details: { ...details, min: Math.min(...cpus), max: Math.max(...cpus), client_cpu_ms: middle.clientCpuMs, rss_mb: middle.rssMb },
  });
}

async function restarted(shape: SceneShape): Promise<Restart> {
  const home = await mkdtemp(join(tmpdir(), "bench-"));
  await writeScene(home, shape);
  let server = await startServer(home);
  const fleet = new Fleet(server.grpcPort);
  try {
    await fleet.connect(sceneProxies(shape));
    await receiptsKept(home);
    const client = process.cpuUsage();
    const came = await fleet.comeBack(async () => {
      await server.stop();
      server = await startServer(home, server.addresses);
    });
    const { user, system } = process.cpuUsage(client);
    const used = await cpuWhenIdle(server);
    return { ...came, readyMs: server.readyMs, cpuMs: used, clientCpuMs: (user + system) / 1000, rssMb: memoryMb(server.pid).rss };
  } finally {
    fleet.close();
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
}

/** What a process has used when it has nothing more to do for now: what it works out once it has been quiet for long is not part of a restart. */
async function cpuWhenIdle({ pid }: MeasuredServer): Promise<number> {
  for (let before = cpuMs(pid); ; ) {
    await systemClock.sleep(IDLE.ms);
    const now = cpuMs(pid);
    if (now - before < IDLE.cpuMs) return before;
    before = now;
  }
}
