import { chmod, copyFile, link } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { type JsonValue, toJsonString } from "@bufbuild/protobuf";
import { onTestFinished } from "vitest";
import { type EnvoyOptions, type EnvoyProcess, startEnvoy } from "../../src/agent/envoy-process.ts";
import { findEnvoy } from "../../src/agent/find-envoy.ts";
import { systemClock } from "../../src/base/clock.ts";
import { buildBootstrap, type DiscoveryTls } from "../../src/envoy/bootstrap/bootstrap.ts";
import { BootstrapSchema } from "../../src/gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { NO_LOCALITY } from "../../src/model/locality.ts";
import { messageRegistry } from "../../src/wire/json.ts";
import { tempDir } from "./cleanup.ts";
import { type MeshHost, PROXY_USER } from "./netns.ts";
import { freePort } from "./ports.ts";
import { eventually } from "./wait.ts";

export interface ProxyOptions {
  /** Where the control plane is: a port on loopback, or the path of a socket. */
  readonly xdsPort: number | string;
  readonly type?: "sidecar" | "router";
  readonly name: string;
  readonly namespace?: string;
  readonly address: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly interception?: "NONE" | "REDIRECT" | "TPROXY";
  readonly protocol?: "delta" | "sotw";
  readonly metadata?: Readonly<Record<string, JsonValue>>;
  /** How it calls the control plane; without it in plaintext. */
  readonly tls?: DiscoveryTls;
  /** The host it runs on; without one, beside the test. */
  readonly host?: MeshHost;
}

export interface RunningProxy extends EnvoyProcess {
  /** Value of one Envoy counter or gauge; 0 when it does not exist. */
  stat(name: string): Promise<number>;
  /** Fails if Envoy refused anything it was sent. */
  assertNothingRejected(): Promise<void>;
}

const START_MS = 90_000;

/** A real Envoy that gets its configuration from a running control plane. Resolves when it is live and listens. */
export async function startProxy(options: ProxyOptions): Promise<RunningProxy> {
  const adminPort = await freePort();
  const process = await startEnvoy({
    ...(await placeOf(options)),
    name: options.name,
    bootstrap: await bootstrapOf(options, adminPort),
    adminPort,
    clock: systemClock,
    // One worker: what one request has shown to be in force is in force for the next.
    flags: ["--file-flush-interval-msec", "50", "--concurrency", "1"],
  });
  onTestFinished(() => process.stop());
  await process.ready(START_MS);
  const stat = async (name: string): Promise<number> => {
    const pattern = `^${name.replaceAll(/[.|]/g, "\\$&")}$`;
    return Number(/: (\d+)/.exec(await process.admin(`/stats?filter=${encodeURIComponent(pattern)}`))?.[1] ?? 0);
  };
  // It says that it is live a moment before its workers listen.
  await eventually("its workers have started", async () => (await stat("listener_manager.workers_started")) === 1);
  return {
    ...process,
    stat,
    async assertNothingRejected() {
      const text = await process.admin("/stats?filter=update_rejected");
      const bad = text.split("\n").filter((line) => /update_rejected: [1-9]/.test(line));
      if (bad.length > 0) throw new Error(`Envoy rejected: ${bad.join("; ")}`);
    },
  };
}

async function bootstrapOf(options: ProxyOptions, adminPort: number): Promise<string> {
  const { xdsPort, namespace = "shop", protocol = "delta" } = options;
  const server = typeof xdsPort === "string" ? { host: `unix:${xdsPort}`, port: 0 } : { host: "127.0.0.1", port: xdsPort };
  const bootstrap = buildBootstrap({
    nodeId: `${options.type ?? "sidecar"}~${options.address}~${options.name}.${namespace}~${namespace}.svc.cluster.local`,
    nodeCluster: `${options.name}.${namespace}`,
    locality: NO_LOCALITY,
    metadata: {
      NAMESPACE: namespace,
      NAME: options.name,
      LABELS: { ...options.labels },
      INSTANCE_IPS: options.address,
      INTERCEPTION_MODE: options.interception ?? "NONE",
      WORKLOAD_IDENTITY: "none",
      ...options.metadata,
    },
    discovery: { ...server, protocol, tls: options.tls },
    adminPort,
    readinessPort: 0,
    prometheusPort: 0,
    sdsSocket: undefined,
  });
  return toJsonString(BootstrapSchema, bootstrap, { registry: await messageRegistry() });
}

type Place = Pick<EnvoyOptions, "binary" | "workDir" | "launcher" | "fetchText">;

/** On a host of its own Envoy runs as the proxy's user, who must be able to reach its files. */
async function placeOf({ host, interception }: ProxyOptions): Promise<Place> {
  const workDir = await tempDir("envoy-");
  const binary = findEnvoy(globalThis.process.env);
  if (host === undefined) return { binary, workDir };
  await chmod(workDir, 0o755);
  const own = join(workDir, "envoy");
  await link(binary, own).catch(() => copyFile(binary, own));
  const user = String(PROXY_USER);
  // Sockets for addresses of others take a privilege.
  const privileges = interception === "TPROXY" ? ["--inh-caps", "+net_admin", "--ambient-caps", "+net_admin"] : [];
  return {
    binary: own,
    workDir,
    launcher: { words: [...host.enter, "setpriv", "--reuid", user, "--regid", user, "--clear-groups", ...privileges], user: PROXY_USER },
    fetchText: (url) => host.ask("fetch", { url }),
  };
}

/** Resolves when a listener answers on a loopback port. */
export const listening = (port: number, host = "127.0.0.1"): Promise<boolean> =>
  eventually(`something listens on ${host}:${port}`, async () => {
    return new Promise<boolean>((resolve) => {
      const socket = connect(port, host, () => {
        socket.destroy();
        resolve(true);
      });
      socket.on("error", () => resolve(false));
    });
  });
