import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, holdProcess } from "../base/clock.ts";
import { EdgeError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { createGrpcServer, DELTA_SECRETS_METHOD, type GrpcServer, SECRETS_METHOD } from "../wire/grpc-server.ts";
import { askAdmin } from "./admin-client.ts";
import type { AgentConfig } from "./agent-config.ts";
import { bootstrapFile } from "./bootstrap/bootstrap-file.ts";
import { getBootstrap } from "./bootstrap/fetch-bootstrap.ts";
import { takeApart } from "./bootstrap/given-bootstrap.ts";
import { localPart } from "./bootstrap/local-part.ts";
import { createDialer, type Dialer } from "./dialer.ts";
import { envoyFlags } from "./envoy-flags.ts";
import { type EnvoyProcess, startEnvoy } from "./envoy-process.ts";
import { createEnvoySupervisor, type EnvoySupervisor } from "./envoy-supervisor.ts";
import { findEnvoy } from "./find-envoy.ts";
import { giveBackMemory } from "./give-back-memory.ts";
import { signAtCa } from "./identity/ca-client.ts";
import { copyCertificates, readEarlierCertificate } from "./identity/certificate-copies.ts";
import { createWorkloadIdentity, type WorkloadIdentity } from "./identity/workload-identity.ts";
import { isServed, prepareSocket, restrictSocket } from "./local-socket.ts";
import { type Metadata, type NodeIdentity, nodeBytes, nodeIdentity, serviceCluster } from "./node-identity.ts";
import { type AgentContext, PARTS } from "./parts.ts";
import { readProxyConfig } from "./proxy-config.ts";
import { serveSecrets } from "./sds/sds-stream.ts";
import { createSecretStore } from "./sds/secret-store.ts";
import { startStatusServer } from "./status-server.ts";
import { openLastGood } from "./xds/last-good.ts";
import { passThrough } from "./xds/pass-through.ts";
import { createXdsProxy } from "./xds/xds-proxy.ts";

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

/** Starts an agent: certificates, configuration, its parts, and Envoy. Throws `EdgeError` where it cannot. */
export async function startAgent(options: AgentOptions): Promise<Agent> {
  const { config, clock, log } = options;
  const { paths } = config;
  if (await isServed(paths.xdsSocket))
    throw new EdgeError("port_taken", `an agent runs here already: ${paths.xdsSocket} is served`, {
      hint: "each needs an ISTIO_HOME of its own",
    });
  const spire = await isServed(paths.sdsSocket);
  const [stop, now, end] = [new AbortController(), new AbortController(), new AbortController()];
  const identity = await makeIdentity(options);
  const node = nodeIdentity({ ...config, hasIdentity: spire || config.ca.length > 0 });
  const context: AgentContext = {
    config,
    node,
    clock,
    log,
    identity,
    subscriptions: [],
    announcements: [],
    announce: () => xds.announce(),
    say: (request) => xds.say(request),
    filters: new Map(),
    routes: [],
    checks: [],
    metrics: [],
    admin: (path) => askAdmin(config.proxy.adminPort, path),
    signal: end.signal,
  };
  const dialer = createDialer({ ...dialOptions(options, identity), targets: config.discovery, namedRoots: config.settings.xdsRoots });
  const lastGood = openLastGood({ directory: paths.lastGood, nodeId: node.id, clock, log });
  const xds = createXdsProxy({ dialer, lastGood, uplink: context, passed: giveBackMemory(clock), clock, log });
  for (const part of PARTS) await part(context);
  const supervisor = supervise(options, { node, dialer, signal: stop.signal });
  addReadiness(context, supervisor);
  addEnd(context, stop);
  const servers = await openSockets(options, { xds: xds.accept, identity, dialer, spire });
  const status = await startStatusServer(config.proxy.statusPort, context.routes, log).catch(async (error: unknown) => {
    end.abort();
    await Promise.all(servers.map((server) => server.drain(0)));
    throw error;
  });
  const letGo = holdProcess();
  if (!spire && config.ca.length > 0) void identity.run(end.signal);
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
  return { stop: () => (stop.signal.aborted ? now.abort() : stop.abort()), done: run() };
}

const dialOptions = ({ config, clock }: AgentOptions, credentials: WorkloadIdentity) => ({
  baseDir: config.baseDir,
  clusterId: config.env.ISTIO_META_CLUSTER_ID || config.settings.clusterId,
  credentials,
  clock,
});

async function makeIdentity(options: AgentOptions): Promise<WorkloadIdentity> {
  const { config, clock, log } = options;
  const { settings, paths } = config;
  const earlier = paths.certificates === undefined ? undefined : await readEarlierCertificate(paths.certificates, clock);
  const identity: WorkloadIdentity = createWorkloadIdentity({
    spiffeId: `spiffe://${settings.trustDomain}/ns/${settings.podNamespace}/sa/${settings.serviceAccount}`,
    ttlMs: settings.secretTtlMs,
    renewAt: settings.renewAt,
    jitter: settings.renewJitter,
    sign: (csr, ttlMs) => signAtCa(dialer, { csr, ttlMs, signer: config.env.ISTIO_META_CERT_SIGNER ?? "" }),
    ...(earlier !== undefined && { earlier }),
    clock,
    log,
  });
  const dialer = createDialer({ ...dialOptions(options, identity), targets: config.ca, namedRoots: settings.caRoots || settings.xdsRoots });
  if (paths.certificates !== undefined) copyCertificates(identity, { directory: paths.certificates, forAll: config.inPod, log });
  return identity;
}

interface Sockets {
  readonly xds: Parameters<typeof createGrpcServer>[0]["accept"];
  readonly identity: WorkloadIdentity;
  readonly dialer: Dialer;
  /** Somebody else serves certificates. */
  readonly spire: boolean;
}

async function openSockets(
  { config, clock, log }: AgentOptions,
  { xds, identity, dialer, spire }: Sockets,
): Promise<readonly GrpcServer[]> {
  const { paths, baseDir } = config;
  const store = createSecretStore({ baseDir, identity, clock, log });
  const open = async (path: string, server: GrpcServer): Promise<GrpcServer> => {
    await prepareSocket(path);
    await server.listen(`unix:${path}`);
    await restrictSocket(path);
    return server;
  };
  const healthy = (): boolean => true;
  const opened = [await open(paths.xdsSocket, createGrpcServer({ accept: xds, healthy, clock }))];
  if (spire) {
    log.info({ socket: paths.sdsSocket }, "certificates come from the SDS server that is there already");
    return opened;
  }
  const passOn = (stream: Parameters<typeof serveSecrets>[0]) => passThrough(stream, dialer, log);
  const secrets = createGrpcServer({
    accept: (stream) => serveSecrets(stream, { store, passOn, log }),
    discoveryPaths: { [SECRETS_METHOD]: "sotw", [DELTA_SECRETS_METHOD]: "delta" },
    healthy,
    clock,
  });
  return [...opened, await open(paths.sdsSocket, secrets)];
}

interface Supervised {
  readonly node: NodeIdentity;
  readonly dialer: Dialer;
  /** Ends the wait for a bootstrap. */
  readonly signal: AbortSignal;
}

function supervise(options: AgentOptions, { node, dialer, signal }: Supervised): EnvoySupervisor {
  const { config, clock, log } = options;
  const { settings, proxy, paths } = config;
  // Looked for at once: without one, nothing else is worth starting.
  const binary = settings.disableEnvoy
    ? ""
    : findEnvoy({ ...config.env, ...(settings.envoyPath !== "" && { ENVOY_PATH: settings.envoyPath }) });
  let bootstrap: Promise<Uint8Array> | undefined;
  let running = proxy;
  const start = async (): Promise<EnvoyProcess> => {
    bootstrap ??= getBootstrap(
      {
        dialer,
        node: nodeBytes(node),
        kept: bootstrapFile(join(paths.lastGood, "bootstrap.pb")),
        builtIn: () => options.builtInBootstrap(node.metadata),
        clock,
        log,
      },
      signal,
    );
    const given = takeApart(await bootstrap);
    if (given.proxyConfig !== "") running = await readProxyConfig(given.proxyConfig);
    const named = { ...node, cluster: serviceCluster({ ...running, otherwise: settings.serviceCluster }, node.metadata) };
    const local = localPart({ node: named, adminPort: proxy.adminPort, xdsSocket: paths.xdsSocket, sdsSocket: paths.sdsSocket });
    await mkdir(paths.work, { recursive: true, mode: 0o700 });
    return startEnvoy({
      binary,
      workDir: paths.work,
      name: "envoy",
      bootstrap: Buffer.concat([given.bootstrap, local]),
      adminPort: proxy.adminPort,
      clock,
      logLevel: settings.proxyLogLevel,
      drainSeconds: Math.ceil(running.drainMs / 1_000),
      passOutput: true,
      flags: await envoyFlags(config, running, log),
    });
  };
  const ignoredPorts = [settings.envoyStatusPort, settings.envoyPrometheusPort];
  return createEnvoySupervisor({
    start,
    adminPort: proxy.adminPort,
    pidFile: join(paths.work, "envoy.pid"),
    drain: {
      inboundOnly: config.type === "sidecar",
      get forMs() {
        return settings.drainSeconds === undefined ? running.terminationDrainMs : settings.drainSeconds * 1_000;
      },
      untilIdle: settings.exitOnZero ? { leastMs: settings.minimumDrainMs, ignoredPorts } : undefined,
    },
    clock,
    log,
  });
}

/** `POST /quitquitquit`: the end. */
function addEnd({ routes }: AgentContext, stop: AbortController): void {
  const handle: AgentContext["routes"][number]["handle"] = (_, response) => void response.end("OK\n", () => stop.abort());
  routes.push({ path: "/quitquitquit", method: "POST", local: true, handle });
}

/** `/healthz/ready`: Envoy has its first configuration, and no part of the agent objects. */
function addReadiness({ routes, checks, config }: AgentContext, supervisor: EnvoySupervisor): void {
  if (!config.settings.disableEnvoy)
    checks.push(async () => ((await supervisor.ready()) ? undefined : "Envoy does not have its first configuration"));
  routes.push({
    path: "/healthz/ready",
    async handle(_, response) {
      for (const check of checks) {
        const reason = await check();
        if (reason !== undefined) return void response.writeHead(503, { "content-type": "text/plain" }).end(`${reason}\n`);
      }
      response.writeHead(200, { "content-type": "text/plain" }).end("ready\n");
    },
  });
}
