import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import { openGrpcChannel } from "../wire/grpc-channel.ts";
import { createGrpcServer, DELTA_SECRETS_METHOD, type GrpcServer, SECRETS_METHOD } from "../wire/grpc-server.ts";
import type { AgentConfig } from "./agent-config.ts";
import type { Dialer } from "./dialer.ts";
import type { WorkloadIdentity } from "./identity/workload-identity.ts";
import { prepareSocket, restrictSocket, type SocketAccess } from "./local-socket.ts";
import { serveSecrets } from "./sds/sds-stream.ts";
import { createSecretStore, isIdentity } from "./sds/secret-store.ts";
import { type Beyond, passThrough } from "./xds/pass-through.ts";

export interface Sockets {
  readonly xds: Parameters<typeof createGrpcServer>[0]["accept"];
  readonly identity: WorkloadIdentity;
  readonly dialer: Dialer;
  /** Somebody else (SPIRE) serves the workload's certificate. */
  readonly spire: boolean;
  readonly config: AgentConfig;
  readonly clock: Clock;
  readonly log: Log;
}

/** Serves configuration and certificates on this machine. */
export async function openSockets({ config, clock, log, xds, identity, dialer, spire }: Sockets): Promise<readonly GrpcServer[]> {
  const { paths, baseDir } = config;
  const store = createSecretStore({ baseDir, identity, onlyFiles: spire, clock, log });
  const open = async (path: string, server: GrpcServer, access?: SocketAccess): Promise<GrpcServer> => {
    await prepareSocket(path, access);
    await server.listen(`unix:${path}`);
    await restrictSocket(path, access);
    return server;
  };
  const healthy = (): boolean => true;
  // Where no Envoy runs, it is for the applications in the pod, which may run as other users.
  const access = config.settings.disableEnvoy && config.inPod ? "all" : "owner";
  const opened = [await open(paths.xdsSocket, createGrpcServer({ accept: xds, healthy, clock }), access)];
  if (spire) log.info({ socket: paths.sdsSocket }, "certificates come from the SDS server that is there already");
  const other: Beyond = {
    name: "the SDS server that is there already",
    dial: async () => ({ channel: await openGrpcChannel({ to: { path: paths.sdsSocket }, clock }), headers: {}, address: paths.sdsSocket }),
    methods: { sotw: SECRETS_METHOD, delta: DELTA_SECRETS_METHOD },
  };
  const passOn: Parameters<typeof serveSecrets>[1]["passOn"] = (stream, names) =>
    passThrough(stream, { dialer: spire && names.every(isIdentity) ? other : dialer, log });
  const secrets = createGrpcServer({
    accept: (stream) => serveSecrets(stream, { store, passOn, log }),
    discoveryPaths: { [SECRETS_METHOD]: "sotw", [DELTA_SECRETS_METHOD]: "delta" },
    healthy,
    clock,
  });
  return [...opened, await open(spire ? paths.filesSocket : paths.sdsSocket, secrets)];
}
