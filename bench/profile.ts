import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { freePort } from "../test/support/ports.ts";
import { type ChurnPace, churn } from "./churn.ts";
import { type Expectation, Fleet, reachesAll } from "./fleet.ts";
import { type Inspector, inspect, type Spent } from "./inspector.ts";
import type { Emit } from "./measurement.ts";
import { busy, createPlaces, type Places } from "./profile-places.ts";
import {
  endpointEdit,
  privateEdit,
  privateNamespace,
  remarkEdit,
  replaceFile,
  routeEdit,
  type SceneEdit,
  type SceneShape,
  sceneProxies,
  writeScene,
} from "./scene.ts";
import { type MeasuredServer, receiptsKept, startServer } from "./server.ts";

const CHANGES = 10;
const SETTLE_MS = 300;
const POLL_MS = 5;
const MB = 1024 * 1024;

/** What is sampled: the processor, or what is allocated. Each has servers of its own, since much of what they do they do once. */
type Kind = "cpu" | "allocations";

interface Profiling {
  readonly shape: SceneShape;
  readonly pace: ChurnPace;
  readonly kind: Kind;
  readonly places: Places;
  readonly emit: Emit;
}

/** A server that is sampled, and the proxies that it serves. */
interface Stage extends Profiling {
  readonly home: string;
  readonly inspector: Inspector;
  readonly fleet: Fleet;
}

/**
 * Where the processor and the memory go in each kind of work: by folder of ours and by what is not ours, with the functions that take most. The server
 * is the one that people run, started from its snapshot; its functions are found by the map that is made with that.
 */
export async function profileSession(shape: SceneShape, { pace, emit }: { readonly pace: ChurnPace; readonly emit: Emit }): Promise<void> {
  const places = createPlaces();
  for (const kind of ["cpu", "allocations"] as const) {
    const profiling = { shape, pace, kind, places, emit };
    await inScene(profiling, profileChanges);
    await inScene({ ...profiling, shape: { ...shape, vhds: true } }, profileHosts);
    await profileRestart(profiling);
  }
}

/** Connects the proxies of a scene and makes one kind of change after the other. The start is sampled too. */
async function inScene(profiling: Profiling, work: (stage: Stage) => Promise<void>): Promise<void> {
  const home = await mkdtemp(join(tmpdir(), "bench-"));
  await writeScene(home, profiling.shape);
  const { inspector, ready } = await startWaiting(home);
  let server: MeasuredServer | undefined;
  let fleet: Fleet | undefined;
  try {
    const spent = await inspector[profiling.kind](async () => {
      await inspector.release();
      server = await ready;
    });
    // One start is as good as another: only the first of the scenes is told.
    if (profiling.shape.vhds !== true) tell(profiling, "start", { spent, times: 1 });
    fleet = new Fleet((await ready).grpcPort);
    await work({ ...profiling, home, inspector, fleet });
  } finally {
    inspector.close();
    fleet?.close();
    await server?.stop();
    await rm(home, { recursive: true, force: true });
  }
}

async function profileChanges(stage: Stage): Promise<void> {
  const { shape, fleet, pace } = stage;
  const [first, ...others] = sceneProxies(shape);
  await sampled(stage, "first-proxy", { times: 1, work: () => fleet.connect(first === undefined ? [] : [first]) });
  await sampled(stage, "other-proxies", { times: others.length, work: () => fleet.connect(others) });
  const namespace = privateNamespace(shape);
  await changes(stage, "route-change", { edit: routeEdit });
  await changes(stage, "endpoint-change", { edit: endpointEdit });
  await changes(stage, "change-for-few", {
    edit: (step) => privateEdit(shape, step),
    expect: (edit) => ({ ...reachesAll(edit), clients: ({ proxy }) => proxy.namespace === namespace }),
  });
  await changes(stage, "change-without-effect", { edit: (step) => remarkEdit(shape, step), expect: undefined });
  await sampled(stage, "churn", { times: pace.rate * pace.seconds, work: () => churn(stage, pace, nextStep) });
}

/** The same proxies, which now take virtual hosts one by one. */
async function profileHosts(stage: Stage): Promise<void> {
  await stage.fleet.connect(sceneProxies(stage.shape));
  await changes(stage, "route-change-vhds", { edit: routeEdit });
}

/** Proxies that come back to a server that has been started anew with nothing changed: from its start until all are served. */
async function profileRestart(profiling: Profiling): Promise<void> {
  const { shape, kind } = profiling;
  const home = await mkdtemp(join(tmpdir(), "bench-"));
  await writeScene(home, shape);
  let server = await startServer(home);
  const fleet = new Fleet(server.grpcPort);
  let inspector: Inspector | undefined;
  try {
    await fleet.connect(sceneProxies(shape));
    await receiptsKept(home);
    const isReady = Promise.withResolvers<void>();
    let spent: Promise<Spent> = Promise.resolve([]);
    await fleet.comeBack(async () => {
      await server.stop();
      const waiting = await startWaiting(home, server.addresses);
      inspector = waiting.inspector;
      spent = waiting.inspector[kind](async () => {
        await waiting.inspector.release();
        server = await waiting.ready;
        isReady.resolve();
        // Nothing is said to those who hold what they are to hold. What the server works out when it has been quiet for a while is not sampled.
        while (fleet.open < fleet.size) await systemClock.sleep(POLL_MS);
        await systemClock.sleep(SETTLE_MS);
      });
      spent.catch(isReady.reject);
      await isReady.promise;
    });
    tell(profiling, "restart", { spent: await spent, times: 1 });
  } finally {
    inspector?.close();
    fleet.close();
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
}

/** Starts a server that waits until it is released, so that its start can be sampled. */
async function startWaiting(
  home: string,
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly inspector: Inspector; readonly ready: Promise<MeasuredServer> }> {
  const port = await freePort();
  const ready = startServer(home, { ...env, NODE_OPTIONS: `--inspect-wait=127.0.0.1:${port}` });
  return { inspector: await Promise.race([inspect(port), ready.then(() => inspect(port))]), ready };
}

/** Steps are numbered through the whole process, so that no change repeats an earlier one. */
let lastStep = 0;
const nextStep = (): number => {
  lastStep += 1;
  return lastStep;
};

interface Changes {
  readonly edit: (step: number) => SceneEdit;
  /** Whom it reaches: all unless said otherwise; undefined where it reaches nobody. */
  readonly expect?: ((edit: SceneEdit) => Expectation) | undefined;
}

function changes(stage: Stage, bench: string, { edit, ...rest }: Changes): Promise<void> {
  const { home, fleet } = stage;
  const expect = "expect" in rest ? rest.expect : reachesAll;
  return sampled(stage, bench, {
    times: CHANGES,
    async work() {
      for (let turn = 0; turn < CHANGES; turn++) {
        const next = edit(nextStep());
        const apply = await replaceFile(home, next);
        if (expect !== undefined) await fleet.observe(apply, expect(next), SETTLE_MS);
        else await apply().then(() => systemClock.sleep(SETTLE_MS));
      }
    },
  });
}

interface Work {
  /** What is told is for each of so many. */
  readonly times: number;
  readonly work: () => Promise<unknown>;
}

async function sampled(stage: Stage, bench: string, { times, work }: Work): Promise<void> {
  const spent = await stage.inspector[stage.kind](async () => void (await work()));
  tell(stage, bench, { spent, times });
}

function tell({ kind, places, emit }: Profiling, bench: string, { spent, times }: { readonly spent: Spent; readonly times: number }): void {
  const details = { ...places.shares(spent), most: places.most(spent) };
  if (kind === "cpu") emit({ bench: `cpu-${bench}`, value: busy(spent) / 1000 / times, unit: "ms", details });
  else emit({ bench: `allocated-${bench}`, value: busy(spent) / MB / times, unit: "MB", details });
}
