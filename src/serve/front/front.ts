import { chmod, mkdir } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { startEnvoy } from "../../agent/envoy-process.ts";
import { createEnvoySupervisor } from "../../agent/envoy-supervisor.ts";
import { findEnvoy } from "../../agent/find-envoy.ts";
import { prepareSocket, restrictSocket } from "../../agent/local-socket.ts";
import type { Clock } from "../../base/clock.ts";
import { EdgeError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import type { HostPort } from "../../settings/host-port.ts";
import type { Settings } from "../../settings/table.ts";
import { DEFAULT_GRPC_SETTINGS, type GrpcServer } from "../../wire/grpc-server.ts";
import type { TlsCredentials } from "../../wire/tls-listener.ts";
import { frontBootstrap } from "./front-bootstrap.ts";
import { frontSecrets } from "./front-secrets.ts";

export interface FrontOptions {
  readonly baseDir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly settings: Pick<Settings, "envoyPath" | "keepaliveMs" | "keepaliveTimeoutMs">;
  /** Addresses that Envoy is to own. */
  readonly addresses: readonly HostPort[];
  /** What it passes calls on to. */
  readonly server: GrpcServer;
  readonly tls: TlsCredentials;
  readonly clock: Clock;
  readonly log: Log;
}

/** An Envoy in front of istiod. */
export interface Front {
  /** Ends it; resolves when it is gone. */
  stop(): Promise<void>;
}

const READY_MS = 20_000;
const LOOK_MS = 50;

/** Puts istiod behind an Envoy: binds Unix sockets that only our own user can open, starts Envoy, and resolves when it takes calls. */
export async function startFront(options: FrontOptions): Promise<Front> {
  const { baseDir, env, settings, addresses, clock, log } = options;
  const directory = join(baseDir, "var/run/istiod");
  const sockets = { socket: join(directory, "istiod.sock"), secretsSocket: join(directory, "secrets.sock") };
  const { keepaliveMs, keepaliveTimeoutMs, envoyPath } = settings;
  const binary = findEnvoy({ ...env, ...(envoyPath !== "" && { ENVOY_PATH: envoyPath }) });
  const { maxConnections } = DEFAULT_GRPC_SETTINGS;
  const bootstrap = frontBootstrap({ addresses, ...sockets, keepaliveMs, keepaliveTimeoutMs, maxConnections });
  const state: FrontState = { asked: new Set(), ended: false };
  const secrets = frontSecrets({ ...options, asked: (name) => state.asked.add(name) });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await chmod(directory, 0o700);
  await bindOwn(sockets.socket, options.server);
  await bindOwn(sockets.secretsSocket, secrets);
  const supervisor = createEnvoySupervisor({
    async start() {
      // What was asked for before was by one that outlived an earlier istiod, and is gone now.
      state.asked.clear();
      const process = await startEnvoy({ binary, workDir: directory, name: "envoy", bootstrap, adminPort: 0, clock, passOutput: true });
      void process.exited.then(() => (state.ended = true));
      return process;
    },
    adminPort: 0,
    pidFile: join(directory, "envoy.pid"),
    drain: { inboundOnly: false, forMs: 0, untilIdle: undefined },
    clock,
    log,
  });
  const end = new AbortController();
  // Ended at once: those who called are sent to another replica when istiod lets go of them.
  const run = supervisor.run(end.signal, end.signal);
  const stop = async (): Promise<void> => {
    end.abort();
    await Promise.all([run, secrets.drain(0)]);
  };
  try {
    await Promise.race([untilReady(state, addresses, clock), run]);
  } catch (error) {
    await stop().catch(() => {});
    throw error;
  }
  return { stop };
}

interface FrontState {
  /** Secrets that the Envoy of ours asked for: it has bound its ports before. */
  readonly asked: Set<string>;
  ended: boolean;
}

async function untilReady(state: FrontState, addresses: readonly HostPort[], clock: Clock): Promise<void> {
  const deadline = clock.monotonic() + READY_MS;
  for (const address of addresses)
    while (state.asked.size < SECRETS || !(await answers(address))) {
      if (state.ended || clock.monotonic() > deadline)
        throw new EdgeError("port_taken", `the Envoy in front of istiod takes no calls on port ${address.port}`, {
          hint: "its own lines above say why; another process may hold the port",
        });
      await clock.sleep(LOOK_MS);
    }
}

/** Its own certificate, and the roots of clients. */
const SECRETS = 2;

async function bindOwn(path: string, server: GrpcServer): Promise<void> {
  await prepareSocket(path);
  await server.listen(`unix:${path}`);
  await restrictSocket(path);
}

function answers({ host, port }: HostPort): Promise<boolean> {
  return new Promise((resolve) => {
    const everywhere = host === "" || host === "0.0.0.0" || host === "::";
    const socket = connect({ host: everywhere ? "127.0.0.1" : host, port }, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
