import { toJsonString } from "@bufbuild/protobuf";
import { onTestFinished } from "vitest";
import { type EnvoyProcess, startEnvoy } from "../../src/agent/envoy-process.ts";
import { findEnvoy } from "../../src/agent/find-envoy.ts";
import { systemClock } from "../../src/base/clock.ts";
import { buildBootstrap } from "../../src/envoy/bootstrap/bootstrap.ts";
import { BootstrapSchema } from "../../src/gen/envoy/config/bootstrap/v3/bootstrap_pb.js";
import { NO_LOCALITY } from "../../src/model/locality.ts";
import { messageRegistry } from "../../src/wire/json.ts";
import { tempDir } from "./cleanup.ts";
import { freePort } from "./ports.ts";
import { eventually } from "./wait.ts";

export interface ProxyOptions {
  readonly xdsPort: number;
  readonly type?: "sidecar" | "router";
  readonly name: string;
  readonly namespace?: string;
  readonly address: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly interception?: "NONE" | "REDIRECT";
  readonly protocol?: "delta" | "sotw";
  readonly metadata?: Readonly<Record<string, string>>;
  /** Wait until Envoy is live (default). */
  readonly wait?: boolean;
}

export interface Proxy extends EnvoyProcess {
  /** Value of one Envoy counter or gauge; 0 when it does not exist. */
  stat(name: string): Promise<number>;
  /** Fails if Envoy refused anything it was sent. */
  assertNothingRejected(): Promise<void>;
}

/** A real Envoy that gets its configuration from a running control plane. */
export async function startProxy(options: ProxyOptions): Promise<Proxy> {
  const namespace = options.namespace ?? "shop";
  const adminPort = await freePort();
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
    discovery: { host: "127.0.0.1", port: options.xdsPort, protocol: options.protocol ?? "delta", tls: undefined },
    adminPort,
    readinessPort: 0,
    prometheusPort: 0,
    sdsSocket: undefined,
  });
  const process = await startEnvoy({
    binary: findEnvoy(globalThis.process.env),
    workDir: await tempDir("envoy-"),
    name: options.name,
    bootstrap: toJsonString(BootstrapSchema, bootstrap, { registry: await messageRegistry() }),
    adminPort,
    clock: systemClock,
    flags: ["--file-flush-interval-msec", "50"],
  });
  onTestFinished(() => process.stop());
  if (options.wait !== false) await process.ready(30_000);
  const stat = async (name: string): Promise<number> =>
    Number(/: (\d+)/.exec(await process.admin(`/stats?filter=${encodeURIComponent(`^${name.replaceAll(/[.|]/g, "\\$&")}$`)}`))?.[1] ?? 0);
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

/** Resolves when a listener answers on a loopback port. */
export const listening = (port: number, host = "127.0.0.1"): Promise<boolean> =>
  eventually(`something listens on ${host}:${port}`, async () => {
    const { connect } = await import("node:net");
    return new Promise<boolean>((resolve) => {
      const socket = connect(port, host, () => {
        socket.destroy();
        resolve(true);
      });
      socket.on("error", () => resolve(false));
    });
  });
