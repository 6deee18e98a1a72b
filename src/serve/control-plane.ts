import type { Server } from "node:http";
import { join } from "node:path";
import type { Caller } from "../authn/authenticator.ts";
import { type Clock, holdProcess } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import { watchMesh } from "../config/mesh/mesh-source.ts";
import { createLastGood } from "../config/store/last-good.ts";
import { createStore } from "../config/store/store.ts";
import type { ChangeSummary, ConfigStore } from "../config/store/store-types.ts";
import { storedPullSecrets } from "../credentials/pull-secret.ts";
import { storedCredentials } from "../credentials/stored-credentials.ts";
import { createWorld, type World } from "../generate/world.ts";
import type { HostPort } from "../settings/host-port.ts";
import { fileSource } from "../sources/files/file-source.ts";
import type { Peer } from "../wire/discovery-stream.ts";
import { HEALTH_TYPE } from "../wire/type-urls.ts";
import { createDebounce } from "../xds/debounce.ts";
import { createXdsServer, type XdsServer } from "../xds/server.ts";
import { countChange, describeChange, logBroken, logRound } from "./change-log.ts";
import { type ClusterLink, type ConnectCluster, clusterSource, linkCluster } from "./cluster-link.ts";
import { ensureDebugToken } from "./debug-token.ts";
import { createDescriptors } from "./descriptors.ts";
import { generateSettings, ISTIO_API_VERSION } from "./generate-settings.ts";
import { createGrpcPorts } from "./grpc-ports.ts";
import { guardMemory } from "./guard-memory.ts";
import type { HealthCheck } from "./health.ts";
import { type Identity, startIdentity } from "./identity.ts";
import { leaseProviders, type ProxyLeases } from "./leases.ts";
import { createMeshState, type MeshState } from "./mesh-state.ts";
import { type ControlPlaneMetrics, createMetrics } from "./metrics.ts";
import { closeHttp, openGrpc, openPages } from "./open-ports.ts";
import { createOutside, type Outside } from "./outside.ts";
import { createPatchLog } from "./patch-log.ts";
import { checksOf } from "./plane-checks.ts";
import { createProblemReport, type ProblemReport } from "./problem-report.ts";
import { createRegistrations, type Registrations } from "./registrations.ts";
import { createRunningSources, type RunningSources, type SourceMaker } from "./running-sources.ts";
import { createSecretLog } from "./secret-log.ts";
import { trustAnchorProvider } from "./trust-anchors.ts";
import { observe, sweepRegularly } from "./upkeep.ts";
import { withVault } from "./vault.ts";
import { viewOfNode } from "./view-of-node.ts";
import { openWebhooks } from "./webhooks.ts";
import { withPlaces } from "./with-places.ts";

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
}

const DRAIN_MS = 3_000;
/** How long the first proxies wait for addresses of gateways that are given by name, and for keys of token issuers. */
const FIRST_ANSWERS_MS = 5_000;

/** Starts the control plane and resolves when the first configuration is in force and every port is open. */
export async function startControlPlane(options: ControlPlaneOptions): Promise<ControlPlane> {
  const { load, link } = await linkCluster(options);
  const debugToken = await ensureDebugToken(options.baseDir);
  const { parts, loaded, stopLoop } = await assemble(options, createMeshState(load.config, options.log), link);
  const letGo = holdProcess();
  const { baseDir, env, clock } = options;
  const watch = watchMesh({ baseDir, env, clock, since: load, cluster: () => link?.mesh() });
  link?.meshChanged(watch.rescan);
  const abort = new AbortController();
  const grpc = createGrpcPorts(parts);
  const opened: Server[] = [];
  try {
    parts.sources.set(load.config.process.configSources);
    const pagePorts = await openPages(parts, opened, debugToken);
    await loaded; // A proxy that came back would take a world that is half read for the removal of all the rest.
    await Promise.race([parts.outside.asked(), new Promise<void>((resolve) => options.clock.after(FIRST_ANSWERS_MS, resolve))]);
    const ports = { ...pagePorts, ...(await openGrpc(parts, grpc)), webhooks: await openWebhooks(parts, { opened, cluster: link }) };
    parts.serving.yes = true;
    void followMesh(parts, watch.loads(abort.signal));
    return { ports, mesh: parts.mesh, sources: parts.sources, debugToken, rescan: watch.rescan, stop };
  } catch (error) {
    await stop();
    throw error;
  }

  async function stop(): Promise<void> {
    abort.abort();
    parts.sources.stop();
    link?.stop();
    stopLoop();
    parts.outside.stop();
    const registered = parts.registrations.source.stop();
    parts.xds.drain();
    parts.identity.stop();
    letGo();
    const ends = [grpc.plain.drain(DRAIN_MS), grpc.secure.drain(DRAIN_MS), ...grpc.closing.map((close) => close())];
    await Promise.all([...ends, ...opened.map(closeHttp), parts.store.flush(), registered]);
  }
}

interface Assembled {
  readonly parts: Parts;
  /** Resolves at the first commit after every source has loaded. */
  readonly loaded: Promise<void>;
  readonly stopLoop: () => void;
}

async function assemble(options: ControlPlaneOptions, mesh: MeshState, link: ClusterLink | undefined): Promise<Assembled> {
  const { clock, log, baseDir } = options;
  const patchLog = createPatchLog(log);
  const metrics = createMetrics(ISTIO_API_VERSION);
  const credentials = withVault(storedCredentials({ get: (key) => store.get(key) }), {
    ...{ baseDir, env: options.env, mesh: mesh.current, clock, log },
    changed: () => xds.push("credentials in Vault"),
  });
  const world = createWorld(generateSettings(mesh.current), {
    patchLeftOut: patchLog.leftOut,
    credentials: credentials.source,
    pullSecrets: storedPullSecrets({ get: (key) => store.get(key) }),
    secretWithheld: createSecretLog(log, metrics.secretWithheld),
    ...(link !== undefined && { mayReadSecrets: (reader) => link.mayReadSecrets(reader) }),
  });
  putMesh(world, mesh.current);
  const descriptors = createDescriptors(world.patches);
  const store = createStore({
    engine: world.engine,
    inputs: world.inputs,
    sources: [],
    readObject: descriptors.readObject,
    log,
    clock,
    persistence: createLastGood(join(baseDir, "var/lib/istio/last-good"), { log }),
  });
  store.selectNamespaces(mesh.current.mesh.discoverySelectors);
  await store.restore();
  const callers = new WeakMap<Peer, Caller>();
  const secure = mesh.current.process.listen.secureGrpcAddr !== "";
  const rootsChanged = (): void => xds.push("certificates of the CA");
  const cluster = link?.tokens(store);
  const identity = await startIdentity({
    ...{ baseDir, mesh: mesh.current, clock, log, metrics: metrics.identity, secure, cluster, rootsChanged },
    rootStore: (root) => link?.rootStore(root),
  });
  link?.publishRoots({ roots: identity.roots, selectors: () => mesh.current.mesh.discoverySelectors });
  const anchors = trustAnchorProvider({ roots: identity.roots, mesh: () => mesh.current.mesh });
  const registrations = await createRegistrations({
    baseDir,
    settings: mesh.current.settings,
    store: () => store,
    clock,
    log,
    note: metrics.registration,
  });
  const leases = leaseProviders(world.engine, world.providers);
  const xds = createXdsServer({
    providers: [...withPlaces(leases.providers, store), anchors],
    viewOf: viewOfNode(world, {
      callers,
      refused: (reason) => metrics.identity.refused("xds", reason),
      seen: registrations.seen,
      kept: leases.view,
    }),
    reports: { [HEALTH_TYPE]: registrations.health },
    left: registrations.left,
    clock,
    log,
    metrics: metrics.xds,
    settings: { admittedPerSecond: mesh.current.settings.admittedPerSecond },
    pushed: (summary) => logRound(log, summary),
  });
  const { promise: loaded, resolve } = Promise.withResolvers<void>();
  const debounce = createDebounce<void>(
    { afterMs: mesh.current.settings.debounceAfterMs, maxMs: mesh.current.settings.debounceMaxMs },
    clock,
    () => {
      if (!sources.loaded) return;
      const putInForce = (): void => {
        const summary = commit({ store, xds, metrics, log });
        patchLog.committed(summary, world.patches.plans.compiled);
        registrations.committed(summary);
        outside.follow();
        problemReport.committed();
        resolve();
      };
      const waiting = descriptors.waiting();
      if (waiting === undefined) putInForce();
      else void waiting.then(putInForce);
    },
  );
  const problemReport = createProblemReport({ world, store, clock, log });
  const outside = createOutside({ baseDir, world, xds, mesh, fetched: metrics.keyFetch, clock, log });
  const sources = createRunningSources({
    make: firstOf([filesOf(options, mesh), clusterSource(link), ...options.sources]),
    own: registrations.source,
    store,
    log,
    staged: () => debounce.note(),
  });
  link?.remotes(sources.attach);
  link?.permissionsChanged(() => xds.push("permissions of service accounts"));
  const serving = { yes: false };
  const laterChecks: Parts["laterChecks"] = [];
  const memory = guardMemory({ options, mesh, world, xds, leases, metrics });
  const checks = (): readonly HealthCheck[] => [
    ...checksOf({ sources, mesh, store, serving }),
    ...identity.checks(),
    ...credentials.checks(),
    memory.check(),
    ...(link?.checks() ?? []),
    ...laterChecks.flatMap((later) => later()),
  ];
  const commitSoon = (): void => debounce.note();
  const parts: Parts = {
    laterChecks,
    injection: { shown: () => undefined },
    options,
    mesh,
    world,
    store,
    sources,
    xds,
    metrics,
    leases,
    identity,
    registrations,
    callers,
    serving,
    checks,
    commitSoon,
    outside,
    problemReport,
  };
  observe(parts);
  const stopSweep = sweepRegularly(parts);
  return { parts, loaded, stopLoop: () => stopAll(debounce.stop, stopSweep, memory.stop, credentials.stop) };
}

/** Every program reads files. */
const filesOf =
  ({ clock, log }: ControlPlaneOptions, mesh: MeshState): SourceMaker =>
  (address) =>
    address.scheme === "fs"
      ? fileSource(address.target, { clock, log, limits: { maxFileBytes: mesh.current.settings.maxConfigFileBytes } })
      : undefined;

const firstOf =
  (makers: readonly SourceMaker[]): SourceMaker =>
  (address) => {
    for (const make of makers) {
      const source = make(address);
      if (source !== undefined) return source;
    }
    return undefined;
  };

function stopAll(...stops: readonly (() => void)[]): void {
  for (const stop of stops) stop();
}

function commit({ store, xds, metrics, log }: Pick<Parts, "store" | "xds" | "metrics"> & { readonly log: Log }): ChangeSummary {
  const summary = store.commit();
  const problems = store.problems();
  logBroken(log, summary.broken, store);
  metrics.rejectedConfig(problems.filter(({ level }) => level === "error").length);
  countChange(metrics, summary);
  if (summary.added.length + summary.changed.length + summary.removed.length > 0) xds.push(describeChange(summary));
  return summary;
}

function putMesh(world: World, { mesh, networks }: LoadedMesh): boolean {
  return world.engine.batch(() => {
    world.inputs.mesh.set("mesh", mesh);
    world.inputs.networks.set("networks", networks);
  });
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
