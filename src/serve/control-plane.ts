import type { Server } from "node:http";
import type { Caller } from "../authn/authenticator.ts";
import { type Clock, holdProcess, waitAtMost } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { together } from "../base/together.ts";
import type { MeshLoadGood } from "../config/mesh/load-mesh.ts";
import { watchMesh } from "../config/mesh/mesh-source.ts";
import type { ConfigStore } from "../config/store/store-types.ts";
import type { World } from "../generate/world.ts";
import type { HostPort } from "../settings/host-port.ts";
import type { Peer } from "../wire/discovery-stream.ts";
import type { RoundSummary } from "../xds/rounds.ts";
import type { XdsServer } from "../xds/server.ts";
import { type Assembled, assemble } from "./assemble.ts";
import { type ClusterLink, type ConnectCluster, linkCluster } from "./cluster-link.ts";
import { ensureDebugToken } from "./debug-token.ts";
import type { EarlyPorts } from "./early-ports.ts";
import { createGrpcPorts } from "./grpc-ports.ts";
import type { HealthCheck } from "./health.ts";
import type { Identity } from "./identity.ts";
import type { ProxyLeases } from "./leases.ts";
import { createMeshState, type MeshState } from "./mesh-state.ts";
import type { ControlPlaneMetrics } from "./metrics.ts";
import type { ObjectReports } from "./object-reports.ts";
import { closeHttp, openEarlyPorts, openGrpc, openPages } from "./open-ports.ts";
import { openRest } from "./open-rest.ts";
import { putMesh } from "./open-store.ts";
import type { Outside } from "./outside.ts";
import type { ProblemReport } from "./problem-report.ts";
import type { Profiler } from "./profiler.ts";
import type { Registrations } from "./registrations.ts";
import type { RunningSources, SourceMaker } from "./running-sources.ts";
import { openWebhooks } from "./webhooks.ts";

export interface ControlPlaneOptions {
  readonly program: string;
  readonly baseDir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly log: Log;
  /** Sources this program has, besides files. */
  readonly sources: readonly SourceMaker[];
  /** How this program finds a Kubernetes cluster, where it knows of such. */
  readonly connect?: ConnectCluster;
}

/** What runs, for the banner and for those who look inside. */
export interface ControlPlane {
  readonly ports: Ports;
  readonly mesh: MeshState;
  readonly sources: RunningSources;
  readonly debugToken: string;
  /** Reads all files again, as SIGHUP asks. */
  rescan(): void;
  /** Lets proxies go and ends. */
  stop(): Promise<void>;
}

export interface Ports {
  readonly grpc: HostPort | undefined;
  readonly secureGrpc: HostPort | undefined;
  readonly http: HostPort | undefined;
  readonly monitoring: HostPort | undefined;
  readonly webhooks: HostPort | undefined;
}

/** All the rooms of the house, wired. */
export interface Parts {
  readonly options: ControlPlaneOptions;
  readonly mesh: MeshState;
  readonly world: World;
  readonly store: ConfigStore;
  readonly sources: RunningSources;
  readonly xds: XdsServer;
  /** What came of the last push that is through. */
  readonly lastPush: () => RoundSummary | undefined;
  readonly metrics: ControlPlaneMetrics;
  readonly leases: ProxyLeases;
  readonly identity: Identity;
  readonly registrations: Registrations;
  /** Who has proved an identity on which stream. */
  readonly callers: WeakMap<Peer, Caller>;
  /** Whether proxies are served yet: not before the first configuration is in force. */
  readonly serving: { yes: boolean };
  readonly checks: () => readonly HealthCheck[];
  /** Checks of what is opened later. */
  readonly laterChecks: (() => readonly HealthCheck[])[];
  /** What pods are injected with, where they are, for those who look inside. */
  readonly injection: { shown: () => unknown };
  /** Puts what is staged in force, as soon as there is quiet. */
  readonly commitSoon: () => void;
  readonly outside: Outside;
  readonly problemReport: ProblemReport;
  readonly reports: ObjectReports;
  readonly profiler: Profiler;
}

const DRAIN_MS = 3_000;
/** How long the first proxies wait for addresses of gateways that are given by name, and for keys of token issuers. */
const FIRST_ANSWERS_MS = 5_000;

/** Starts the control plane and resolves when the first configuration is in force and every port is open. */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { load, link } = await linkCluster(options);
  const begun = begin(options, load, link);
  begun.catch(() => link?.stop()); // One that is still followed would keep a process that has failed.
  const { parts, loaded, stopLoop, early, debugToken } = await begun;
  const letGo = holdProcess();
  const { baseDir, env, clock } = options;
  const watch = watchMesh({ baseDir, env, clock, since: load, cluster: () => link?.mesh() });
  link?.meshChanged(watch.rescan);
  const abort = new AbortController();
  const ownNamespace = link?.namespace ?? load.config.settings.podNamespace;
  const grpc = createGrpcPorts(parts, { early, ownNamespace });
  const opened: Server[] = [];
  try {
    parts.sources.set(load.config.process.configSources);
    const pagePorts = await openPages(parts, opened, { debugToken, ownNamespace });
    await loaded; // A proxy that came back would take a world that is half read for the removal of all the rest.
    await waitAtMost(clock, FIRST_ANSWERS_MS, parts.outside.asked());
    const ports = { ...pagePorts, ...(await openGrpc(parts, grpc)), webhooks: await openWebhooks(parts, { opened, cluster: link }) };
    early.close();
    openRest(parts, { grpc, ports, opened, cluster: link, ending: abort.signal });
    parts.serving.yes = true;
    void followMesh(parts, watch.loads(abort.signal));
    const rescan = (): void => {
      watch.rescan();
      parts.sources.rescan();
    };
    return { ports, mesh: parts.mesh, sources: parts.sources, debugToken, rescan, stop };
  } catch (error) {
    await stop();
    throw error;
  }

  async function stop(): Promise<void> {
    abort.abort();
    early.close();
    parts.sources.stop();
    link?.stop();
    const written = stopLoop();
    parts.outside.stop();
    const registered = parts.registrations.stop();
    parts.xds.drain();
    parts.identity.stop();
    letGo();
    const ends = [grpc.plain.drain(DRAIN_MS), grpc.secure.drain(DRAIN_MS), ...grpc.closing.map((close) => close())];
    await Promise.all([...ends, ...opened.map(closeHttp), parts.store.flush(), registered, written]);
  }
}

/** What is done before anything is read: the ports for proxies first. */
async function begin(
  options: ControlPlaneOptions,
  load: MeshLoadGood,
  link: ClusterLink | undefined,
): Promise<Assembled & { readonly early: EarlyPorts; readonly debugToken: string }> {
  const early = await openEarlyPorts(load.config.process, options.clock);
  try {
    const [debugToken, assembled] = await together([
      ensureDebugToken(options.baseDir),
      assemble(options, createMeshState(load, options.log), link),
    ]);
    return { ...assembled, early, debugToken };
  } catch (error) {
    early.close();
    throw error;
  }
}

async function followMesh(
  { mesh, world, store, sources, xds, identity, commitSoon, outside, problemReport }: Parts,
  loads: AsyncIterable<Parameters<MeshState["reload"]>[0]>,
): Promise<void> {
  for await (const load of loads) {
    const next = mesh.reload(load);
    if (next === undefined) continue;
    sources.set(next.process.configSources);
    store.selectNamespaces(next.mesh.discoverySelectors);
    if (store.pending) commitSoon();
    identity.meshChanged(next);
    if (!putMesh(world, next)) continue;
    outside.follow();
    problemReport.committed();
    xds.push("mesh.yaml");
  }
}
