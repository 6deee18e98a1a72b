import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE } from "../src/wire/type-urls.ts";
import { type ChurnPace, churn } from "./churn.ts";
import type { Client } from "./client.ts";
import { type Expectation, Fleet, type Propagation, reachesAll } from "./fleet.ts";
import { type Emit, median, quantile } from "./measurement.ts";
import { cpuMs, forgetPeak, memoryMb } from "./process-usage.ts";
import {
  endpointEdit,
  everythingEdit,
  largeFileEdit,
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
import { type MeasuredServer, startServer } from "./server.ts";

const ENDPOINT_LIMIT_MS = 100;
/** For what is resident after the routes have changed. */
const MEMORY_LIMIT_MB = 250;
const ROUTE_CHANGE = "route-change";
const DEBOUNCE_MS = 100;
const DRAIN_LIMIT_MS = 1_000;
/** Where so much is received, the server is to be what is measured: the client may take this many times its CPU at most. */
const LARGE_MB = 50;
const CLIENT_TIMES = 0.75;
const MB = 1024 * 1024;

interface Session {
  readonly shape: SceneShape;
  readonly home: string;
  readonly server: MeasuredServer;
  readonly fleet: Fleet;
  readonly changes: number;
  /** The pace of changes that do not wait for one another; none are made where it is left out. */
  readonly churn?: ChurnPace;
  readonly emit: Emit;
  /** The most memory seen in any phase. */
  peakMb: number;
}

interface Change {
  readonly bench: string;
  readonly limit?: number;
  readonly edit: (step: number) => SceneEdit;
  readonly expect: (edit: SceneEdit) => Expectation;
  /** Made shortly before the measured change, so that this one waits for the end of the debounce window. */
  readonly before?: (step: number) => SceneEdit;
}

/** Connects all proxies of a scene to a fresh server, then makes one kind of change after the other and follows each to the last stream. */
export async function measureStreams(shape: SceneShape, options: Pick<Session, "changes" | "churn" | "emit">): Promise<void> {
  const emit: Emit = shape.vhds === true ? (one) => options.emit({ ...one, bench: `${one.bench}-vhds` }) : options.emit;
  const home = await mkdtemp(join(tmpdir(), "bench-"));
  await writeScene(home, shape);
  const server = await startServer(home, { PILOT_DEBOUNCE_AFTER: `${DEBOUNCE_MS}ms` });
  const fleet = new Fleet(server.grpcPort);
  const session: Session = { ...options, shape, home, server, fleet, emit, peakMb: 0 };
  try {
    await connectAll(session);
    const afterInit = memoryMb(server.pid).rss;
    let afterRoutes = 0;
    for (const change of changesOf(shape)) {
      await measureChange(session, change);
      if (change.bench === ROUTE_CHANGE) afterRoutes = memoryMb(server.pid).rss;
    }
    if (shape.vhds !== true) await measureRemark(session);
    if (session.churn !== undefined) await measureChurn(session, session.churn);
    const memory = { rss_after_init_mb: afterInit, rss_after_changes_mb: memoryMb(server.pid).rss };
    emit({ bench: "memory", value: afterRoutes, unit: "MB", limit: MEMORY_LIMIT_MB, details: scene(session) });
    emit({ bench: "memory-peak", value: session.peakMb, unit: "MB", details: { ...scene(session), ...memory } });
  } finally {
    fleet.close();
    await server.stop();
    await rm(home, { recursive: true, force: true });
  }
}

/** The first proxy pays for the generation; the others are then connected all at once, as after a restart. */
async function connectAll(session: Session): Promise<void> {
  const [first, ...others] = sceneProxies(session.shape);
  for (const { bench, proxies } of [
    { bench: "first-proxy", proxies: first === undefined ? [] : [first] },
    { bench: "other-proxies", proxies: others },
  ]) {
    const bytesBefore = session.fleet.bytes;
    const { result: times, usage } = await metered(session, async () => {
      const served = await session.fleet.connect(proxies);
      await session.fleet.quiet();
      return served;
    });
    const details = {
      ...scene(session),
      connected: proxies.length,
      p50: median(times),
      received_mb: (session.fleet.bytes - bytesBefore) / MB,
      ...usage,
    };
    session.emit({ bench, value: times.at(-1) ?? 0, unit: "ms", details });
    tellClient(session, bench, details);
  }
}

function changesOf(shape: SceneShape): readonly Change[] {
  const namespace = privateNamespace(shape);
  const routeChanges: readonly Change[] = [
    { bench: ROUTE_CHANGE, edit: routeEdit, expect: reachesAll },
    {
      bench: "private-route-change",
      edit: (step) => privateEdit(shape, step),
      expect: (edit) => ({ ...reachesAll(edit), clients: ({ proxy }) => proxy.namespace === namespace }),
    },
  ];
  // What is sent of clusters, endpoints and listeners does not depend on how routes are.
  if (shape.vhds === true) return routeChanges;
  return [
    { bench: "endpoint-change", limit: ENDPOINT_LIMIT_MS, edit: endpointEdit, expect: reachesAll },
    { bench: "endpoint-change-debounced", limit: ENDPOINT_LIMIT_MS, edit: endpointEdit, expect: reachesAll, before: endpointEdit },
    { bench: "endpoint-change-in-large-file", edit: (step) => largeFileEdit(shape, step), expect: reachesAll },
    ...routeChanges,
    { bench: "change-of-everything", edit: everythingEdit, expect: () => ({ clients: () => true, reached: hasEverythingAgain }) },
  ];
}

/** Every cluster with discovered endpoints came again, and with each its endpoints, which Envoy would otherwise wait for. */
function hasEverythingAgain(client: Client): boolean {
  const all = client.asked(ENDPOINT_TYPE);
  return [CLUSTER_TYPE, ENDPOINT_TYPE].every((typeUrl) => (client.tally.resources.get(typeUrl) ?? 0) >= all);
}

/** Steps are numbered through the whole process, so that no change repeats an earlier one. */
let lastStep = 0;
const nextStep = (): number => {
  lastStep += 1;
  return lastStep;
};

async function measureChange(session: Session, change: Change): Promise<void> {
  const runs: Propagation[] = [];
  session.server.takeChanges();
  const { usage } = await metered(session, async () => {
    for (let turn = 0; turn < session.changes; turn++) runs.push(await makeChange(session, change));
  });
  const pushes = session.server.takeChanges().map(({ ms }) => ms);
  const waited = change.before === undefined ? 0 : DEBOUNCE_MS;
  const at = (share: number): number => median(runs.map(({ times }) => quantile(times, share))) - waited;
  const last = median(runs.map(({ times }) => Math.max(...times))) - waited;
  const details = {
    ...scene(session),
    changes: runs.length,
    first: at(0),
    p50: at(0.5),
    slowest: Math.max(...runs.flatMap(({ times }) => times)) - waited,
    push_to_last_ack: median(pushes),
    touched: median(runs.map(({ touched }) => touched)),
    messages: median(runs.map(({ messages }) => messages)),
    received_mb: median(runs.map(({ bytes }) => bytes)) / MB,
    ...usage,
    cpu_ms: usage.cpu_ms / runs.length,
    client_cpu_ms: usage.client_cpu_ms / runs.length,
  };
  session.emit({ bench: change.bench, value: last, unit: "ms", ...(change.limit !== undefined && { limit: change.limit }), details });
  tellClient(session, change.bench, details);
}

/** How much of the processor the client took in a large row, beside the server. */
function tellClient({ emit }: Session, bench: string, { cpu_ms, client_cpu_ms, received_mb }: Taken): void {
  if (received_mb < LARGE_MB) return;
  const details = { cpu_ms, client_cpu_ms, received_mb };
  emit({ bench: `${bench}-client`, value: client_cpu_ms / cpu_ms, unit: "×", limit: CLIENT_TIMES, details });
}

type Taken = Pick<Usage, "cpu_ms" | "client_cpu_ms"> & { readonly received_mb: number };

/** Changes at a pace of their own: how far the proxies are behind, and how long after the last change they have it. */
async function measureChurn(session: Session, pace: ChurnPace): Promise<void> {
  await session.fleet.quiet();
  const { result, usage } = await metered(session, () => churn(session, pace, nextStep));
  const { changes, p50, p99, drain, deliveries } = result;
  const details = { ...scene(session), rate: pace.rate, changes, deliveries, ...usage };
  const each = { cpu_ms: usage.cpu_ms / changes, client_cpu_ms: usage.client_cpu_ms / changes };
  session.emit({ bench: "churn-lag", value: p50, unit: "ms", details: { ...details, ...each, p99 } });
  session.emit({ bench: "churn-drain", value: drain, unit: "ms", limit: DRAIN_LIMIT_MS, details });
}

/** How long before the measured change the one before it is made: well within the debounce window, well after it was seen. */
const AHEAD_MS = 60;

async function makeChange({ home, fleet }: Session, { before, edit, expect }: Change): Promise<Propagation> {
  // Quiet for longer than the debounce window: the next change is a first one.
  await systemClock.sleep(DEBOUNCE_MS * 2);
  if (before !== undefined) {
    await (await replaceFile(home, before(nextStep())))();
    await systemClock.sleep(AHEAD_MS);
  }
  const next = edit(nextStep());
  const apply = await replaceFile(home, next);
  return fleet.observe(apply, expect(next));
}

/** How long a change without effect is waited for. */
const REMARK_MS = 700;

async function measureRemark(session: Session): Promise<void> {
  const { home, fleet, shape } = session;
  const { result, usage } = await metered(session, async () => {
    // The first one also takes back what was changed in the file.
    await (await replaceFile(home, remarkEdit(shape, nextStep())))();
    await systemClock.sleep(REMARK_MS);
    await fleet.quiet();
    const apply = await replaceFile(home, remarkEdit(shape, nextStep()));
    return fleet.observe(
      async () => {
        await apply();
        await systemClock.sleep(REMARK_MS);
      },
      { clients: () => false, reached: () => false },
    );
  });
  session.emit({
    bench: "change-without-effect",
    value: result.messages,
    unit: "messages",
    limit: 0,
    details: { ...scene(session), touched: result.touched, cpu_ms: usage.cpu_ms },
  });
}

const scene = ({ shape: { services, endpoints, classes }, fleet }: Session) => ({ services, endpoints, streams: fleet.size, classes });

interface Usage {
  readonly cpu_ms: number;
  readonly client_cpu_ms: number;
  readonly rss_mb: number;
  readonly peak_mb: number;
}

async function metered<T>(session: Session, work: () => Promise<T>): Promise<{ readonly result: T; readonly usage: Usage }> {
  const { pid } = session.server;
  forgetPeak(pid);
  const [server, client] = [cpuMs(pid), process.cpuUsage()];
  const result = await work();
  const used = process.cpuUsage(client);
  const { rss, peak } = memoryMb(pid);
  session.peakMb = Math.max(session.peakMb, peak);
  return { result, usage: { cpu_ms: cpuMs(pid) - server, client_cpu_ms: (used.user + used.system) / 1000, rss_mb: rss, peak_mb: peak } };
}
