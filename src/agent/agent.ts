import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type Clock, holdProcess } from "../base/clock.ts";
import { EdgeError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { serviceCluster } from "../model/service-cluster.ts";
import { askAdmin } from "./admin-client.ts";
import type { AgentConfig } from "./agent-config.ts";
import { bootstrapFile } from "./bootstrap/bootstrap-file.ts";
import { getBootstrap } from "./bootstrap/fetch-bootstrap.ts";
import { takeApart } from "./bootstrap/given-bootstrap.ts";
import { localPart } from "./bootstrap/local-part.ts";
import { createDialer, type Dialer } from "./dialer.ts";
import { envoyFlags, onlyIpv6 } from "./envoy-flags.ts";
import { type EnvoyOptions, type EnvoyProcess, startEnvoy } from "./envoy-process.ts";
import { createEnvoySupervisor, type EnvoySupervisor, observedPorts } from "./envoy-supervisor.ts";
import { agentEnvoy } from "./find-envoy.ts";
import { giveBackMemory } from "./give-back-memory.ts";
import { writeGrpcBootstrap } from "./grpc-bootstrap.ts";
import { signAtCa } from "./identity/ca-client.ts";
import { assertRoomForCopies, copyCertificates, hasCopies, readEarlierCertificate } from "./identity/certificate-copies.ts";
import { countSigning } from "./identity/count-signing.ts";
import { firstCertificate } from "./identity/first-certificate.ts";
import { type CertificateSource, createWorkloadIdentity, type WorkloadIdentity } from "./identity/workload-identity.ts";
import { isServed } from "./local-socket.ts";
import { type Metadata, type NodeIdentity, nodeBytes, nodeIdentity } from "./node-identity.ts";
import { openSockets } from "./open-sockets.ts";
import { hasOtherServer } from "./other-sds-server.ts";
import { type AgentContext, PARTS } from "./parts.ts";
import { type AgentProxyConfig, readProxyConfig } from "./proxy-config.ts";
import type { AgentMetric } from "./status/agent-metrics.ts";
import { type StatusServer, startStatusServer } from "./status-server.ts";
import { openLastGood } from "./xds/last-good.ts";
import { createXdsProxy, type XdsProxy } from "./xds/xds-proxy.ts";

export interface AgentOptions {
  readonly config: AgentConfig;
  readonly clock: Clock;
  readonly log: Log;
  /** Makes a bootstrap where the control plane knows none. */
  builtInBootstrap(metadata: Metadata): Promise<Uint8Array>;
}

/** A running agent. */
export interface Agent {
  /** Drains Envoy and ends; a second call ends at once. */
  stop(): void;
  /** Resolves when everything has ended. */
  readonly done: Promise<void>;
}

const DRAIN_MS = 500;

/** Starts an agent: certificates, configuration, its parts, and Envoy. Throws `EdgeError` where it cannot, and then nothing of it is left. */
export async function startAgent(options: AgentOptions): Promise<Agent> {
  const end = new AbortController();
  try {
    return await start(options, end);
  } catch (error) {
    end.abort();
    throw error;
  }
}

async function start(options: AgentOptions, end: AbortController): Promise<Agent> {
  const { config, clock, log } = options;
  const { paths } = config;
  if (await isServed(paths.xdsSocket))
    throw new EdgeError("port_taken", `an agent runs here already: ${paths.xdsSocket} is served`, {
      hint: "each needs an ISTIO_HOME of its own",
    });
  const spire = await hasOtherServer(config, clock, log);
  const hasOwnIdentity = !spire && hasCertificates(config);
  const [stop, now] = [new AbortController(), new AbortController()];
  const metrics: AgentMetric[] = [];
  const identity = await makeIdentity(options, metrics);
  const node = nodeIdentity({
    ...config,
    hasIdentity: spire || hasCertificates(config),
    hasCredentials: await isServed(paths.credentialSocket),
  });
  const ending = endingOf(stop, now);
  const { endAtOnce } = ending;
  const context = contextOf(options, { node, identity, metrics, endAtOnce, ending: stop.signal, signal: end.signal, xds: () => xds });
  const way = { targets: config.discovery, namedRoots: config.settings.xdsRoots, headers: config.headers.xds };
  const dialer = createDialer({ ...dialOptions(options, identity), ...way });
  const lastGood = openLastGood({ directory: paths.lastGood, nodeId: node.id, clock, log });
  const xds: XdsProxy = createXdsProxy({ dialer, lastGood, uplink: context, passed: giveBackMemory(clock), clock, log });
  metrics.push(...xds.metrics);
  for (const part of PARTS) await part(context);
  const identified = async (): Promise<void> => {
    if (hasOwnIdentity) await firstCertificate({ identity, baseDir: config.baseDir, clock });
  };
  const sdsSocket = spire ? paths.filesSocket : paths.sdsSocket;
  const supervisor = supervise(options, { node, dialer, sdsSocket, signal: stop.signal, identified });
  addReadiness(context, supervisor);
  addEnd(context, ending.stop);
  const servers = await openSockets({ config, clock, log, xds: xds.accept, identity, dialer, spire });
  const begin = async (): Promise<StatusServer> => {
    await serveGrpc(context, xds, hasOwnIdentity);
    return startStatusServer(config.proxy.statusPort, context.routes, log);
  };
  const status = await begin().catch(async (error: unknown) => {
    await Promise.all(servers.map((server) => server.drain(0)));
    throw error;
  });
  const letGo = holdProcess();
  if (hasOwnIdentity) void identity.run(end.signal);
  const run = async (): Promise<void> => {
    try {
      if (config.settings.disableEnvoy)
        await new Promise<void>((resolve) => stop.signal.addEventListener("abort", () => resolve(), { once: true }));
      else await supervisor.run(stop.signal, now.signal);
    } finally {
      end.abort();
      status.close();
      await Promise.all(servers.map((server) => server.drain(DRAIN_MS)));
      await lastGood.flush();
      letGo();
    }
  };
  return { stop: ending.stop, done: run() };
}

/** The end of an agent: with draining, or without where it was asked for twice or there is nobody left to wait for. */
function endingOf(stop: AbortController, now: AbortController): Pick<Agent, "stop"> & Pick<AgentContext, "endAtOnce"> {
  let atOnce = false;
  return {
    endAtOnce() {
      atOnce = true;
    },
    stop() {
      if (atOnce || stop.signal.aborted) now.abort();
      stop.abort();
    },
  };
}

interface ContextParts extends Pick<AgentContext, "node" | "identity" | "metrics" | "endAtOnce" | "ending" | "signal"> {
  /** Made after the context, which tells it what to ask for. */
  xds(): XdsProxy;
}

const contextOf = ({ config, clock, log }: AgentOptions, { xds, ...parts }: ContextParts): AgentContext => ({
  ...parts,
  config,
  clock,
  log,
  subscriptions: [],
  announcements: [],
  announce: () => xds().announce(),
  say: (request) => xds().say(request),
  filters: new Map(),
  routes: [],
  checks: [],
  admin: (path) => askAdmin(config.proxy.adminPort, path),
});

function dialOptions({ config, clock }: AgentOptions, credentials: WorkloadIdentity) {
  const { baseDir, settings } = config;
  const directory = resolve(baseDir, settings.provisionedCerts);
  return {
    baseDir,
    clusterId: config.env.ISTIO_META_CLUSTER_ID || settings.clusterId,
    credentials,
    ...(settings.provisionedCerts !== "" && { provisioned: () => readEarlierCertificate(directory, clock) }),
    clock,
  };
}

/** Somebody signs certificates, or they lie in files. */
const hasCertificates = ({ ca, settings }: AgentConfig): boolean => ca.length > 0 || settings.fileMountedCerts;

async function makeIdentity(options: AgentOptions, metrics: AgentMetric[]): Promise<WorkloadIdentity> {
  const { config, clock, log } = options;
  const { settings, paths } = config;
  const earlier = paths.certificates === undefined ? undefined : await readEarlierCertificate(paths.certificates, clock);
  const signer = config.env.ISTIO_META_CERT_SIGNER ?? "";
  const signing = countSigning((csr, ttlMs) => signAtCa(dialer, { csr, ttlMs, signer }), clock);
  const copies =
    settings.fileMountedCerts || paths.certificates === undefined ? undefined : { directory: paths.certificates, forAll: config.inPod };
  const sign: typeof signing.sign = async (csr, ttlMs) => {
    if (copies !== undefined && identity.current === undefined) await assertRoomForCopies(copies);
    return signing.sign(csr, ttlMs);
  };
  metrics.push(...signing.metrics);
  const source = settings.fileMountedCerts ? await mounted(options) : undefined;
  const identity: WorkloadIdentity = createWorkloadIdentity({
    spiffeId: `spiffe://${settings.trustDomain}/ns/${settings.podNamespace}/sa/${settings.serviceAccount}`,
    ttlMs: settings.secretTtlMs,
    renewAt: settings.renewAt,
    jitter: settings.renewJitter,
    sign,
    keyKind: config.keyKind,
    ...(source !== undefined && { source }),
    ...(earlier !== undefined && { earlier }),
    clock,
    log,
  });
  const way = { targets: config.ca, namedRoots: settings.caRoots || settings.xdsRoots, headers: config.headers.ca };
  const dialer = createDialer({ ...dialOptions(options, identity), ...way });
  if (copies !== undefined) copyCertificates(identity, { ...copies, clock, log });
  return identity;
}

async function mounted({ config: { paths }, clock }: AgentOptions): Promise<CertificateSource | undefined> {
  const { mountedCertificates } = await import("./identity/mounted-certificates.ts");
  return paths.certificates === undefined ? undefined : mountedCertificates(paths.certificates, clock);
}

/**
 * What applications need whose gRPC library speaks xDS itself. Where there is no Envoy the agent asks for itself what it adds to Envoy's stream (roots of the mesh, names),
 * and is ready when the files are there that such a library would not look at again for a while.
 */
async function serveGrpc({ config, node, identity, checks, signal }: AgentContext, xds: XdsProxy, hasOwnIdentity: boolean): Promise<void> {
  const { paths, settings, discovery } = config;
  const { certificates } = paths;
  await writeGrpcBootstrap(paths.grpcBootstrap, { node, xdsSocket: paths.xdsSocket, certificates });
  if (!settings.disableEnvoy) return;
  if (discovery.length > 0) xds.standAlone(nodeBytes(node), signal);
  if (certificates !== undefined && hasOwnIdentity)
    checks.push(async () =>
      identity.current !== undefined && (await hasCopies(certificates)) ? undefined : "the workload's certificate has not come",
    );
}

interface Supervised {
  readonly node: NodeIdentity;
  readonly dialer: Dialer;
  /** Where Envoy asks for secrets. */
  readonly sdsSocket: string;
  /** Ends the wait for a bootstrap. */
  readonly signal: AbortSignal;
  /** What to wait for before the control plane is asked: who we are. */
  readonly identified: () => Promise<void>;
}

/** What Envoy is started with, and the ProxyConfig that counts then. */
interface StartWith {
  readonly bootstrap: EnvoyOptions["bootstrap"];
  readonly running: AgentProxyConfig;
}

/** A file of the user's own is run as it is, as in Istio; else the control plane's bootstrap, asked for once, with what is local. */
function bootstrapsOf(options: AgentOptions, { node, dialer, sdsSocket, signal, identified }: Supervised): () => Promise<StartWith> {
  const { config, clock, log } = options;
  const { settings, proxy, paths, baseDir } = config;
  if (proxy.customConfigFile !== "") return async () => ({ bootstrap: { file: resolve(baseDir, proxy.customConfigFile) }, running: proxy });
  const kept = bootstrapFile(join(paths.lastGood, "bootstrap.pb"));
  const builtIn = (): Promise<Uint8Array> => options.builtInBootstrap(node.metadata);
  let asked: Promise<Uint8Array> | undefined;
  return async () => {
    asked ??= identified().then(() => getBootstrap({ dialer, node: nodeBytes(node), kept, builtIn, clock, log }, signal));
    const given = takeApart(await asked);
    const running = given.proxyConfig === "" ? proxy : await readProxyConfig(given.proxyConfig);
    const named = { ...node, cluster: serviceCluster({ ...running, otherwise: settings.serviceCluster }, node.metadata) };
    const local = localPart({
      node: named,
      adminPort: proxy.adminPort,
      onlyIpv6: onlyIpv6(config),
      logJson: settings.logJson,
      xdsSocket: paths.xdsSocket,
      sdsSocket,
    });
    return { bootstrap: Buffer.concat([given.bootstrap, local]), running };
  };
}

function supervise(options: AgentOptions, supervised: Supervised): EnvoySupervisor {
  const { config, clock, log } = options;
  const { settings, proxy, paths } = config;
  // Looked for at once: without one, nothing else is worth starting.
  const binary = settings.disableEnvoy ? "" : agentEnvoy(config);
  const bootstraps = bootstrapsOf(options, supervised);
  let running = proxy;
  const start = async (): Promise<EnvoyProcess> => {
    const made = await bootstraps();
    running = made.running;
    await mkdir(paths.work, { recursive: true, mode: 0o700 });
    return startEnvoy({
      binary,
      workDir: paths.work,
      runIn: config.baseDir,
      name: "envoy",
      bootstrap: made.bootstrap,
      adminPort: proxy.adminPort,
      clock,
      logLevel: settings.proxyLogLevel,
      drainSeconds: Math.ceil(running.drainMs / 1_000),
      passOutput: true,
      flags: await envoyFlags(config, running, log),
    });
  };
  return createEnvoySupervisor({
    start,
    adminPort: proxy.adminPort,
    pidFile: join(paths.work, "envoy.pid"),
    drain: {
      inboundOnly: config.type === "sidecar",
      get forMs() {
        return settings.drainSeconds === undefined ? running.terminationDrainMs : settings.drainSeconds * 1_000;
      },
      untilIdle: settings.exitOnZero ? { leastMs: settings.minimumDrainMs, ignoredPorts: observedPorts(settings) } : undefined,
    },
    clock,
    log,
  });
}

/** `POST /quitquitquit`: the end, asked for by an application that is done, such as a Job's. As in Istio it waits for nobody. */
function addEnd({ routes, log, endAtOnce }: AgentContext, stop: () => void): void {
  const end = (): void => {
    log.info("the application asks for the end (/quitquitquit)");
    endAtOnce();
    stop();
  };
  const handle: AgentContext["routes"][number]["handle"] = (_, response) => void response.end("OK\n", end);
  routes.push({ path: "/quitquitquit", method: "POST", local: true, handle });
}

/** `/healthz/ready`: Envoy has its first configuration, and no part of the agent objects. */
function addReadiness({ routes, checks, config, metrics }: AgentContext, supervisor: EnvoySupervisor): void {
  let readyAfter: number | undefined;
  metrics.push({
    name: "startup_duration_seconds",
    type: "gauge",
    values: () => (readyAfter === undefined ? [] : [{ value: readyAfter }]),
  });
  if (!config.settings.disableEnvoy)
    checks.push(async () => ((await supervisor.ready()) ? undefined : "Envoy does not have its first configuration"));
  routes.push({
    path: "/healthz/ready",
    async handle(_, response) {
      for (const check of checks) {
        const reason = await check();
        if (reason !== undefined) return void response.writeHead(503, { "content-type": "text/plain" }).end(`${reason}\n`);
      }
      readyAfter ??= process.uptime();
      response.writeHead(200, { "content-type": "text/plain" }).end("ready\n");
    },
  });
}
