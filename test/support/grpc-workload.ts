import { fork } from "node:child_process";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** Calls made one after the other. */
export interface CallOrder {
  readonly kind: "call";
  readonly target: string;
  readonly count: number;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Let xDS choose the credentials; else the channel is plain text. */
  readonly secure: boolean;
  readonly timeoutMs: number | undefined;
}

/** A server to open. */
export interface ServeOrder {
  readonly kind: "serve";
  readonly address: string;
  readonly name: string;
}

export type Order = CallOrder | ServeOrder;

/** A process with gRPC's own xDS client in it, pointed at a control plane. */
export interface GrpcWorkload {
  /** What each call was answered with: the server's text, or `status <number>: <details>`. */
  call(target: string, options?: Partial<Omit<CallOrder, "kind" | "target">>): Promise<readonly string[]>;
  /** Opens a server that asks the control plane who may call it; resolves with its port when it serves. */
  serve(address: string, name: string): Promise<number>;
}

export interface WorkloadOptions {
  readonly xdsPort: number;
  readonly namespace?: string;
  readonly address?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly metadata?: Readonly<Record<string, unknown>>;
  /** Files with the workload's certificate, its key, and the roots of the mesh. */
  readonly identity?: { readonly certificate: string; readonly key: string; readonly roots: string };
}

type Answer = { readonly id: number; readonly answers: readonly string[] } | { readonly id: number; readonly error: string };

/** A bootstrap that an agent wrote, and the user who reads it; without one, that of the test. */
export interface WrittenBootstrap {
  readonly file: string;
  readonly user?: number;
}

/** Starts a workload; it ends with the test. */
export function startGrpcWorkload(options: WorkloadOptions | WrittenBootstrap): GrpcWorkload {
  const { user, ...told } =
    "file" in options
      ? { user: options.user, GRPC_XDS_BOOTSTRAP: options.file }
      : { user: undefined, GRPC_XDS_BOOTSTRAP_CONFIG: JSON.stringify(bootstrap(options)) };
  const child = fork(join(import.meta.dirname, "grpc-workload-process.ts"), {
    env: { ...process.env, GRPC_XDS_EXPERIMENTAL_RBAC: "true", ...told },
    execArgv: [],
    ...(user !== undefined && { uid: user, gid: user }),
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const waiting = new Map<number, { resolve(answers: readonly string[]): void; reject(error: Error): void }>();
  let last = 0;
  child.on("message", (answer: Answer) => {
    const asked = waiting.get(answer.id);
    waiting.delete(answer.id);
    if ("error" in answer) asked?.reject(new Error(answer.error));
    else asked?.resolve(answer.answers);
  });
  child.on("exit", (code) => {
    for (const { reject } of waiting.values()) reject(new Error(`the gRPC workload ended with ${code}`));
  });
  const order = (one: Order): Promise<readonly string[]> =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, { resolve, reject });
      child.send({ id: last, order: one });
    });
  return {
    call: (target, { count = 1, path = "/echo.Echo/Say", headers = {}, secure = false, timeoutMs } = {}) =>
      order({ kind: "call", target: `xds:///${target}`, count, path, headers, secure, timeoutMs }),
    serve: async (address, name) => Number((await order({ kind: "serve", address, name }))[0]),
  };
}

/** What an agent writes for a gRPC library: where the control plane is and who the workload is. */
function bootstrap({ xdsPort, namespace = "shop", address = "127.0.0.9", labels = {}, metadata = {}, identity }: WorkloadOptions): object {
  return {
    xds_servers: [{ server_uri: `127.0.0.1:${xdsPort}`, channel_creds: [{ type: "insecure" }], server_features: ["xds_v3"] }],
    node: {
      id: `sidecar~${address}~caller.${namespace}~${namespace}.svc.cluster.local`,
      locality: {},
      metadata: { GENERATOR: "grpc", NAMESPACE: namespace, LABELS: labels, ...metadata },
    },
    server_listener_resource_name_template: "xds.istio.io/grpc/lds/inbound/%s",
    ...(identity !== undefined && {
      certificate_providers: {
        default: {
          plugin_name: "file_watcher",
          config: {
            certificate_file: identity.certificate,
            private_key_file: identity.key,
            ca_certificate_file: identity.roots,
            refresh_interval: "900s",
          },
        },
      },
    }),
  };
}
