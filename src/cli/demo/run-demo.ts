import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toJsonString } from "@bufbuild/protobuf";
import { type EnvoyProcess, startEnvoy } from "../../agent/envoy-process.ts";
import { findEnvoy } from "../../agent/find-envoy.ts";
import type { Clock } from "../../base/clock.ts";
import { silentLog } from "../../base/log.ts";
import { buildBootstrap } from "../../envoy/bootstrap/bootstrap.ts";
import { BootstrapSchema } from "../../gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { NO_LOCALITY } from "../../model/locality.ts";
import { type ControlPlane, startControlPlane } from "../../serve/control-plane.ts";
import { messageRegistry } from "../../wire/json.ts";
import { DEMO_HOST, DEMO_ROUTES, type DemoPorts, demoServices } from "./scene.ts";

export interface DemoOptions {
  readonly clock: Clock;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
}

/** Requests since the last line, by the Envoy they went through and the version that answered. */
interface Counts {
  readonly sidecar: Record<string, number>;
  readonly gateway: Record<string, number>;
}

const REQUESTS_PER_TICK = 10;
const TICK_MS = 100;
const TICKS_PER_LINE = 10;

/** A mesh on one machine: two echo services, a sidecar and a gateway, a control plane, and a client that counts who answers. */
export async function runDemo(options: DemoOptions): Promise<void> {
  const stack = new AsyncDisposableStack();
  try {
    const home = await mkdtemp(join(tmpdir(), "istio-demo-"));
    stack.defer(() => rm(home, { recursive: true, force: true }));
    const binary = findEnvoy(options.env);
    const [v1, v2] = [await startEcho("v1", stack), await startEcho("v2", stack)];
    const ports: DemoPorts = { v1, v2, sidecar: await freePort(), gateway: await freePort() };
    const routes = await writeScene(home, ports);
    const plane = await startPlane(home, options);
    stack.defer(plane.stop);
    await startEnvoys({ home, binary, plane, clock: options.clock, stack });
    options.print(`istiod, two Envoys and two echo services are running; the rule is in\n  ${routes}`);
    options.print(`look inside: ISTIO_HOME=${home} istioctl proxy-status --istiod http://127.0.0.1:${plane.ports.http?.port}`);
    options.print("change the weights, save, and watch the counts (Ctrl-C ends the demo and removes everything)");
    await countAnswers(ports, options);
  } catch (error) {
    if (!options.signal.aborted) throw error; // What is interrupted while it starts fails in many ways.
  } finally {
    await stack.disposeAsync();
  }
}

async function writeScene(home: string, ports: DemoPorts): Promise<string> {
  const conf = join(home, "etc/istio/conf");
  await mkdir(conf, { recursive: true });
  await writeFile(join(conf, "services.yaml"), demoServices(ports));
  const routes = join(conf, "routes.yaml");
  await writeFile(routes, DEMO_ROUTES);
  return routes;
}

function startPlane(home: string, { clock }: DemoOptions): Promise<ControlPlane> {
  const env = { GRPC_ADDR: "127.0.0.1:0", SECURE_GRPC_ADDR: "", HTTP_ADDR: "127.0.0.1:0", MONITORING_ADDR: "" };
  return startControlPlane({ program: "istiod", baseDir: home, env, clock, log: silentLog, sources: [] });
}

interface EnvoyScene {
  readonly home: string;
  readonly binary: string;
  readonly plane: ControlPlane;
  readonly clock: Clock;
  readonly stack: AsyncDisposableStack;
}

async function startEnvoys(scene: EnvoyScene): Promise<void> {
  const envoys = [
    await startOne(scene, { name: "client", type: "sidecar", app: "client", address: "127.0.0.1" }),
    await startOne(scene, { name: "edge", type: "router", app: "edge", address: "127.0.0.3" }),
  ];
  for (const envoy of envoys) await envoy.ready(30_000);
}

async function startOne(
  { home, binary, plane, clock, stack }: EnvoyScene,
  who: { name: string; type: string; app: string; address: string },
): Promise<EnvoyProcess> {
  const adminPort = await freePort();
  const bootstrap = buildBootstrap({
    nodeId: `${who.type}~${who.address}~${who.name}.demo~demo.svc.cluster.local`,
    nodeCluster: `${who.app}.demo`,
    locality: NO_LOCALITY,
    metadata: {
      NAMESPACE: "demo",
      NAME: who.name,
      LABELS: { app: who.app },
      INSTANCE_IPS: who.address,
      INTERCEPTION_MODE: "NONE",
      WORKLOAD_IDENTITY: "none",
    },
    discovery: { host: "127.0.0.1", port: plane.ports.grpc?.port ?? 0, protocol: "delta", tls: undefined },
    adminPort,
    readinessPort: 0,
    prometheusPort: 0,
    sdsSocket: undefined,
  });
  const text = toJsonString(BootstrapSchema, bootstrap, { registry: await messageRegistry() });
  const envoy = await startEnvoy({ binary, workDir: home, name: who.name, bootstrap: text, adminPort, clock });
  stack.defer(envoy.stop);
  return envoy;
}

/** Calls through both Envoys and prints once a second who answered, until the signal aborts. */
async function countAnswers(ports: DemoPorts, { clock, signal, print }: DemoOptions): Promise<void> {
  let counts: Counts = { sidecar: {}, gateway: {} };
  for (let tick = 1; !signal.aborted; tick++) {
    await Promise.all(
      Array.from({ length: REQUESTS_PER_TICK }, async () => {
        note(counts.sidecar, await ask(ports.sidecar, DEMO_HOST));
        note(counts.gateway, await ask(ports.gateway, "echo.example.com"));
      }),
    );
    if (tick % TICKS_PER_LINE === 0) {
      print(`through the sidecar: ${show(counts.sidecar)}   through the gateway: ${show(counts.gateway)}`);
      counts = { sidecar: {}, gateway: {} };
    }
    await clock.sleep(TICK_MS, signal).catch(() => {});
  }
}

const note = (counts: Record<string, number>, answer: string): void => {
  counts[answer] = (counts[answer] ?? 0) + 1;
};

const show = (counts: Readonly<Record<string, number>>): string =>
  Object.entries(counts)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, count]) => `${name} ${count}`)
    .join(", ");

/** Which version answered, or the status where none did. */
function ask(port: number, host: string): Promise<string> {
  return new Promise((resolve) => {
    const call = request({ host: "127.0.0.1", port, path: "/", headers: { host }, timeout: 5_000 }, (response) => {
      response.resume();
      const version = response.headers["x-version"];
      response.on("end", () => resolve(typeof version === "string" ? version : `status ${response.statusCode}`));
    });
    call.on("timeout", () => call.destroy(new Error("timeout")));
    call.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "error"));
    call.end();
  });
}

/** Starts a server that says which version it is; gives its port. */
async function startEcho(version: string, stack: AsyncDisposableStack): Promise<number> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { "x-version": version });
    response.end(`${version}\n`);
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  stack.defer(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return (server.address() as AddressInfo).port;
}

async function freePort(): Promise<number> {
  const server = createTcpServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
