import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { Fleet, type FleetOptions, reachesAll } from "./fleet.ts";
import { type Emit, median } from "./measurement.ts";
import { cpuMs, memoryMb } from "./process-usage.ts";
import { endpointEdit, replaceFile, routeEdit, type SceneEdit, type SceneShape, sceneProxies, writeScene } from "./scene.ts";
import { type MeasuredServer, startServer } from "./server.ts";
import { createTokenIssuer } from "./token-issuer.ts";

/** How many times the CPU of plaintext the same may take over TLS. */
const TLS_TIMES = 1.7;
const QUIET_MS = 500;

/** What one way of connecting cost the server, by what was done. */
type Costs = ReadonlyMap<string, { readonly cpuMs: number; readonly ms: number }>;

interface Scene {
  readonly shape: SceneShape;
  readonly home: string;
  readonly changes: number;
}

/** The same proxies and the same changes in plaintext (15010) and over TLS with tokens (15012), each against a fresh server: how much more it takes. */
export async function measureTls(shape: SceneShape, { changes, emit }: { readonly changes: number; readonly emit: Emit }): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "bench-"));
  const issuer = createTokenIssuer();
  await writeScene(home, shape);
  await issuer.introduce(home);
  const scene = { shape, home, changes };
  try {
    const plain = await measured(scene, async () => ({}));
    const secure = await measured(scene, async () => ({ secure: await issuer.callsTo(home) }));
    for (const [what, over] of secure.costs) {
      const bare = plain.costs.get(what);
      if (bare === undefined) continue;
      emit({
        bench: `tls-${what}`,
        value: over.cpuMs / bare.cpuMs,
        unit: "×",
        limit: TLS_TIMES,
        details: {
          streams: shape.proxies,
          cpu_ms: over.cpuMs,
          plaintext_cpu_ms: bare.cpuMs,
          last: over.ms,
          plaintext_last: bare.ms,
          rss_mb: secure.rssMb,
          plaintext_rss_mb: plain.rssMb,
        },
      });
    }
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

async function measured(
  scene: Scene,
  connecting: () => Promise<Pick<FleetOptions, "secure">>,
): Promise<{ readonly costs: Costs; readonly rssMb: number }> {
  const server = await startServer(scene.home);
  const options = await connecting();
  const fleet = new Fleet(options.secure === undefined ? server.grpcPort : server.securePort, options);
  try {
    return { costs: await costsOf(scene, server, fleet), rssMb: memoryMb(server.pid).rss };
  } finally {
    fleet.close();
    await server.stop();
  }
}

/** The first proxy is not counted: generation costs the same both ways. */
async function costsOf({ shape, home, changes }: Scene, { pid }: MeasuredServer, fleet: Fleet): Promise<Costs> {
  const [first, ...others] = sceneProxies(shape);
  await fleet.connect(first === undefined ? [] : [first]);
  await fleet.quiet();
  const costs = new Map<string, { readonly cpuMs: number; readonly ms: number }>();
  const before = cpuMs(pid);
  const served = await fleet.connect(others);
  await fleet.quiet();
  costs.set("other-proxies", { cpuMs: cpuMs(pid) - before, ms: served.at(-1) ?? 0 });
  for (const [what, edit] of [
    ["route-change", routeEdit],
    ["endpoint-change", endpointEdit],
  ] as const) {
    const start = cpuMs(pid);
    const last: number[] = [];
    for (let turn = 0; turn < changes; turn++) last.push(await makeChange(home, fleet, edit(nextStep())));
    costs.set(what, { cpuMs: (cpuMs(pid) - start) / changes, ms: median(last) });
  }
  return costs;
}

/** Both ways change the same files, so no change may repeat an earlier one. */
let lastStep = 0;
const nextStep = (): number => {
  lastStep += 1;
  return lastStep;
};

async function makeChange(home: string, fleet: Fleet, edit: SceneEdit): Promise<number> {
  await systemClock.sleep(QUIET_MS);
  const apply = await replaceFile(home, edit);
  return Math.max(...(await fleet.observe(apply, reachesAll(edit))).times);
}
