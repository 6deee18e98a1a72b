import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { Fleet } from "./fleet.ts";
import { type Emit, median } from "./measurement.ts";
import { cpuMs, memoryMb } from "./process-usage.ts";
import { sceneProxies, writeScene } from "./scene.ts";
import { type MeasuredServer, startServer } from "./server.ts";
import type { Extent } from "./shapes.ts";

/** As quick as Istio's own control plane is with the same on disk. */
const READY_LIMIT_MS = 1_000;
/** A control plane that uses less CPU than this in half a second has nothing to do. */
const IDLE = { cpuMs: 20, ms: 500 } as const;
/** When it has begun with what it does while nobody is connected (`src/serve/prepare-ahead.ts`). */
const ALONE_MS = 4_000;

/** Starts once without measuring, so that what a first start does once (bundling, compiling) is done. */
export async function warmUp(): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "bench-"));
  try {
    await (await startServer(home)).stop("SIGTERM");
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** From the start of the process to ready: with nothing on disk, with the whole scene, and with the scene and what an earlier start kept of it. */
export async function measureStart({ shape, starts }: Extent, emit: Emit): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "bench-"));
  try {
    const measure = async (bench: string, limit?: number): Promise<void> => {
      const measured: { readonly ms: number; readonly atReady: MeasuredServer["atReady"] }[] = [];
      for (let turn = 0; turn < starts; turn++) {
        const server = await startServer(home);
        measured.push({ ms: server.readyMs, atReady: server.atReady });
        await server.stop();
      }
      const readies = measured.map(({ ms }) => ms);
      const middle = (of: keyof MeasuredServer["atReady"]): number => median(measured.map(({ atReady }) => atReady[of]));
      const details = {
        starts,
        min: Math.min(...readies),
        max: Math.max(...readies),
        cpu_ms: middle("cpuMs"),
        rss_mb: middle("rssMb"),
        peak_mb: middle("peakMb"),
      };
      emit({ bench, value: median(readies), unit: "ms", ...(limit !== undefined && { limit }), details });
    };
    await measure("start-empty");
    await writeScene(home, { ...shape, classes: 1 });
    await measure("start-loaded", READY_LIMIT_MS);
    await keepDocuments(home);
    await measure("start-again", READY_LIMIT_MS);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** The first proxy of a control plane that has been alone for some seconds: from the connection to its last route table. Each start is a first one. */
export async function measureFirstProxy({ shape: extent, starts }: Extent, emit: Emit): Promise<void> {
  const shape = { ...extent, classes: 1 };
  const times: number[] = [];
  const memory: number[] = [];
  for (let turn = 0; turn < starts; turn++) {
    const home = await mkdtemp(join(tmpdir(), "bench-"));
    try {
      await writeScene(home, shape);
      const server = await startServer(home);
      const fleet = new Fleet(server.grpcPort);
      await systemClock.sleep(ALONE_MS);
      await idle(server);
      memory.push(memoryMb(server.pid).rss);
      times.push(...(await fleet.connect(sceneProxies(shape).slice(0, 1))));
      fleet.close();
      await server.stop();
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  }
  const details = { starts, min: Math.min(...times), max: Math.max(...times), rss_before_mb: median(memory) };
  emit({ bench: "first-proxy-after-seconds", value: median(times), unit: "ms", details });
}

async function idle({ pid }: Pick<MeasuredServer, "pid">): Promise<void> {
  for (let before = cpuMs(pid); ; ) {
    await systemClock.sleep(IDLE.ms);
    const now = cpuMs(pid);
    if (now - before < IDLE.cpuMs) return;
    before = now;
  }
}

/** Lets a server run until it has written what its documents say. */
async function keepDocuments(home: string): Promise<void> {
  const server = await startServer(home);
  const file = join(home, "var/lib/istio/documents");
  while (!existsSync(file)) await systemClock.sleep(50);
  await server.stop();
}
