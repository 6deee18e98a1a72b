import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { type Cluster, startCluster } from "../test/cluster/start-cluster.ts";
import { type ClusterShape, clusterClasses, clusterProxies, clusterSceneMb, slicePatch, writeClusterScene } from "./cluster-scene.ts";
import { type Contestant, startOurs, startPeer } from "./contestant.ts";
import { Fleet, reachesAll } from "./fleet.ts";
import { median, quantile, tellRaw } from "./measurement.ts";
import { type Compared, compared, type Goal } from "./peer-figures.ts";
import { cpuMs, forgetPeak, memoryMb } from "./process-usage.ts";
import { foundLoadClient, type LoadClient, loadClient } from "./xdsload.ts";

/** How large the cluster is, and how often each thing is repeated. */
export interface ClusterExtent {
  readonly shape: ClusterShape;
  readonly starts: number;
  readonly changes: number;
}

/** The scene that the limits are about. */
export const FULL_CLUSTER: ClusterExtent = {
  shape: { services: 1000, endpoints: 5, namespaces: 20, nodes: 20, proxies: 200 },
  starts: 5,
  changes: 100,
};

/** Just large enough that every figure has something to measure. */
export const QUICK_CLUSTER: ClusterExtent = {
  shape: { services: 20, endpoints: 2, namespaces: 2, nodes: 2, proxies: 8 },
  starts: 1,
  changes: 2,
};

/** Others may take their time, and a machine may be busy. */
const PATIENCE_MS = 600_000;

/** What one control plane was measured at. Times in ms, memory in MB. */
interface ClusterRun {
  readonly ready: number;
  readonly readyCpu: number;
  readonly readyRss: number;
  readonly init: number;
  readonly initCpu: number;
  readonly initRss: number;
  readonly initPeak: number;
  readonly changeP50: number;
  readonly changeP99: number;
  readonly changeCpu: number;
  readonly touched: number;
}

interface ClusterFigure extends Goal {
  readonly read: (run: ClusterRun) => number;
}

/** The rows that are to be reached, in the order in which they are told. */
const FIGURES: readonly ClusterFigure[] = [
  { scenario: "start to ready", unit: "ms", read: ({ ready }) => ready, limit: 1_500 },
  { scenario: "start to ready", unit: "CPU s", read: ({ readyCpu }) => readyCpu / 1000 },
  { scenario: "memory when ready", unit: "MB", read: ({ readyRss }) => readyRss, limit: 200 },
  { scenario: "all proxies initialised", unit: "ms", read: ({ init }) => init, times: 5 },
  { scenario: "all proxies initialised", unit: "CPU s", read: ({ initCpu }) => initCpu / 1000, times: 8 },
  { scenario: "memory when all are initialised", unit: "MB", read: ({ initRss }) => initRss, limit: 300 },
  { scenario: "all proxies initialised, peak", unit: "MB", read: ({ initPeak }) => initPeak },
  { scenario: "endpoint change to the last proxy, p50", unit: "ms", read: ({ changeP50 }) => changeP50 },
  { scenario: "endpoint change to the last proxy, p99", unit: "ms", read: ({ changeP99 }) => changeP99, limit: 150 },
  { scenario: "endpoint change", unit: "CPU s", read: ({ changeCpu }) => changeCpu / 1000 },
  { scenario: "endpoint change, reached", unit: "proxies", read: ({ touched }) => touched },
];

/**
 * Writes a scene to a real API server and measures ours beside it, then a peer where there is one, with the same objects and the same client. A peer is
 * a command `CMD DIRECTORY PORTBASE` as elsewhere; its cluster is that of `DIRECTORY/kubeconfig`.
 */
export async function measureCluster(
  command: string | undefined,
  extent: ClusterExtent,
  told: (row: Compared) => void,
): Promise<readonly Compared[]> {
  const client = command === undefined ? foundLoadClient() : loadClient();
  const cluster = await startCluster({ controllerManager: false });
  const work = mkdtempSync(join(tmpdir(), "bench-cluster-"));
  try {
    await writeClusterScene(cluster, extent.shape);
    const size: Compared = { scenario: "objects to read, as JSON", unit: "MB", ours: await clusterSceneMb(cluster) };
    const match = { cluster, extent, client, work };
    const own = await runOne({ ...match, start: () => startBeside(cluster, work) });
    tellRaw({ who: "ours", run: "cluster", ...own });
    const other = command === undefined ? undefined : await runOne({ ...match, start: () => startOther(command, cluster, work) });
    if (other !== undefined) tellRaw({ who: "peer", run: "cluster", ...other });
    const rows = [size, ...FIGURES.map(({ read, ...goal }) => compared(goal, read(own), other && read(other)))];
    for (const row of rows) told(row);
    return rows;
  } finally {
    rmSync(work, { recursive: true, force: true });
    await cluster.stop();
  }
}

/** Ours on the machine of somebody with a kubeconfig; each start is a first one. */
function startBeside({ kubeconfig }: Cluster, work: string): Promise<Contestant> {
  return startOurs(undefined, mkdtempSync(join(work, "ours-")), { KUBECONFIG: kubeconfig });
}

function startOther(command: string, { kubeconfig }: Cluster, work: string): Promise<Contestant> {
  const directory = mkdtempSync(join(work, "peer-"));
  const scene = join(directory, "scene");
  mkdirSync(scene);
  symlinkSync(kubeconfig, join(scene, "kubeconfig"));
  return startPeer(command, scene, directory);
}

interface Match {
  readonly cluster: Cluster;
  readonly extent: ClusterExtent;
  /** Undefined where it is not beside the project. */
  readonly client: LoadClient | undefined;
  readonly work: string;
  readonly start: () => Promise<Contestant>;
}

/** Starts it again and again, then connects all proxies to the last one at once, then makes one change after the other. */
async function runOne({ cluster, extent, client, work, start }: Match): Promise<ClusterRun> {
  const starts: { readonly ms: number; readonly cpu: number; readonly rss: number }[] = [];
  let contestant: Contestant;
  for (;;) {
    contestant = await start();
    starts.push({ ms: contestant.readyMs, cpu: contestant.cpuAtReadyMs, rss: contestant.rssAtReadyMb });
    if (starts.length >= extent.starts) break;
    await contestant.stop();
  }
  const fleet = new Fleet(contestant.grpcPort, { comesAgain: true, patienceMs: PATIENCE_MS });
  try {
    const pid = Number(readFileSync(contestant.pidFile, "utf8"));
    const init =
      client === undefined ? await initialise(fleet, extent, pid) : await initialiseByClient(client, { contestant, extent, work });
    if (fleet.size === 0) await fleet.connect(clusterProxies(extent.shape));
    const changes = await changeEndpoints({ fleet, cluster, extent, pid });
    return {
      ready: median(starts.map(({ ms }) => ms)),
      readyCpu: median(starts.map(({ cpu }) => cpu)),
      readyRss: median(starts.map(({ rss }) => rss)),
      ...init,
      ...changes,
    };
  } finally {
    fleet.close();
    await contestant.stop();
  }
}

type Initialised = Pick<ClusterRun, "init" | "initCpu" | "initRss" | "initPeak">;

/** By the client that the other comparisons use too. It takes less of the machine than clients in JavaScript do, which a fast server would wait for. */
async function initialiseByClient(
  client: LoadClient,
  { contestant, extent: { shape }, work }: { readonly contestant: Contestant; readonly extent: ClusterExtent; readonly work: string },
): Promise<Initialised> {
  const classes = clusterClasses(shape);
  const scene = mkdtempSync(join(work, "proxies-"));
  const { namespaces, proxies } = shape;
  client.generate(scene, { services: 1, endpoints: 1, virtualServices: 0, destinationRules: 0, namespaces, proxies, classes });
  const [line] = await client.run("run", [
    ...["--address", `127.0.0.1:${contestant.grpcPort}`, "--gen", scene, "--pid-file", contestant.pidFile],
    ...["--proxies", String(proxies), "--classes", String(classes), "--mode", "init"],
  ]);
  if (line?.init_total_ms === undefined || line.srv_cpu_until_init_s === undefined)
    throw new Error("the load client did not say how long the proxies took");
  return {
    init: line.init_total_ms,
    initCpu: line.srv_cpu_until_init_s * 1000,
    initRss: line.srv_rss_after_mb ?? 0,
    initPeak: line.srv_rss_phase_peak_mb ?? 0,
  };
}

async function initialise(fleet: Fleet, { shape }: ClusterExtent, pid: number): Promise<Initialised> {
  forgetPeak(pid);
  const before = cpuMs(pid);
  const times = await fleet.connect(clusterProxies(shape));
  await fleet.quiet();
  const { rss, peak } = memoryMb(pid);
  return { init: times.at(-1) ?? 0, initCpu: cpuMs(pid) - before, initRss: rss, initPeak: peak };
}

/** Longer than anybody waits for a second change to come, so that each is a first one. */
const APART_MS = 250;
const QUIET_MS = 50;

interface Changing {
  readonly fleet: Fleet;
  readonly cluster: Cluster;
  readonly extent: ClusterExtent;
  readonly pid: number;
}

async function changeEndpoints({ fleet, cluster, extent, pid }: Changing) {
  const lasts: number[] = [];
  const touched: number[] = [];
  const before = cpuMs(pid);
  for (let turn = 0; turn < extent.changes; turn++) {
    await systemClock.sleep(APART_MS);
    const { path, body, marker } = slicePatch(nextStep());
    const patch = async (): Promise<void> =>
      void (await cluster.client.api.call({ method: "PATCH", path, body, contentType: "application/merge-patch+json" }));
    const seen = await fleet.observe(patch, reachesAll({ marker }), QUIET_MS);
    lasts.push(Math.max(...seen.times));
    touched.push(seen.touched);
  }
  const changeCpu = (cpuMs(pid) - before) / extent.changes;
  return { changeP50: median(lasts), changeP99: quantile(lasts, 0.99), changeCpu, touched: median(touched) };
}

/** Steps are numbered through the whole process, so that no change repeats an earlier one. */
let lastStep = 0;
const nextStep = (): number => {
  lastStep += 1;
  return lastStep;
};
