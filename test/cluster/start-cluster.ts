import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../support/wait.ts";
import { writeKubeconfig } from "./cluster-files.ts";
import { type ClusterPrograms, findClusterPrograms } from "./cluster-programs.ts";
import { apiServerFlags, etcdFlags, managerFlags, prepareSite, type Reach, type Site } from "./cluster-site.ts";
import { type Guard, startGuard } from "./guard.ts";
import { createKubeClient, type KubeClient } from "./kube-client.ts";
import { defineProgram, type Program } from "./program.ts";
import { requestToken, type TokenOptions } from "./service-account-token.ts";

export { clusterImpossible } from "./cluster-programs.ts";
export type { KubeClient } from "./kube-client.ts";
export { KubeApiError, type KubeObject } from "./kube-object.ts";

/** How a cluster is to be. */
export interface ClusterOptions extends Reach {
  /** Deployments, EndpointSlices, service accounts of namespaces and the like need it (default). */
  readonly controllerManager?: boolean;
  /** More flags of kube-apiserver. */
  readonly apiServerFlags?: readonly string[];
}

/** A program of the cluster. */
export type ClusterPart = "etcd" | "apiserver" | "controller-manager";

/** A real Kubernetes control plane of its own: etcd, kube-apiserver and, unless told otherwise, kube-controller-manager. */
export interface Cluster {
  readonly url: string;
  /** PEM of who signed the API server's certificate. */
  readonly ca: string;
  readonly adminToken: string;
  /** Path of the administrator's kubeconfig. */
  readonly kubeconfig: string;
  readonly serviceCidr: string;
  /** Where etcd takes requests, in plaintext and without credentials. */
  readonly etcdUrl: string;
  /** Directory of its files, gone with it. */
  readonly dir: string;
  readonly guard: Guard;
  /** As the administrator. */
  readonly client: KubeClient;
  /** As who a token says. */
  clientFor(token: string): KubeClient;
  /** A bound token of a service account, by the TokenRequest API. */
  createServiceAccountToken(namespace: string, serviceAccount: string, options?: TokenOptions): Promise<string>;
  /** Path of a kubeconfig with a token of a service account. */
  kubeconfigFor(namespace: string, serviceAccount: string): Promise<string>;
  /** Stops a part in its tracks (SIGSTOP): connections stay open, nothing answers. */
  pause(part: ClusterPart): void;
  resume(part: ClusterPart): void;
  /** SIGKILL; every connection breaks. */
  killApiServer(): Promise<void>;
  /** Resolves when it is ready again, at the same address. */
  restartApiServer(): Promise<void>;
  /** Forgets old versions of all objects. After a restart of the API server, whose memory is longer, who pages or watches on from one is told 410. */
  compactEtcd(): Promise<void>;
  log(part: ClusterPart): string;
  stop(): Promise<void>;
}

/** Starts a cluster; resolves when it is ready. It ends with `stop`, or with this process. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const programs = findClusterPrograms();
  if (typeof programs === "string") throw new Error(programs);
  const dir = await mkdtemp(join(tmpdir(), "istio-cluster-"));
  const guard = startGuard();
  guard.onDeath(`rm -rf ${dir}`);
  const site = await prepareSite(dir, options);
  const parts = partsOf(programs, site, options.apiServerFlags ?? []);
  const { url, files, kubeconfig, serviceCidr } = site;
  const etcdUrl = `http://127.0.0.1:${site.etcdPort}`;
  const access = { url, ca: files.ca };
  const clients: KubeClient[] = [];
  const clientFor = (token: string): KubeClient => {
    const client = createKubeClient({ ...access, token });
    clients.push(client);
    return client;
  };
  const client = clientFor(files.adminToken);
  const stop = async (): Promise<void> => {
    for (const one of clients) one.close();
    for (const part of ["controller-manager", "apiserver", "etcd"] as const) await parts[part].stop("SIGKILL");
    await rm(dir, { recursive: true, force: true });
    guard.dismiss();
  };
  try {
    await startParts(parts, client, options);
  } catch (error) {
    await stop();
    throw error;
  }
  const createServiceAccountToken = (namespace: string, account: string, asked: TokenOptions = {}): Promise<string> =>
    requestToken(client, `${namespace}/${account}`, asked);
  return {
    ...access,
    adminToken: files.adminToken,
    kubeconfig,
    serviceCidr,
    etcdUrl,
    dir,
    guard,
    client,
    clientFor,
    createServiceAccountToken,
    async kubeconfigFor(namespace, account) {
      const token = await createServiceAccountToken(namespace, account);
      return writeKubeconfig(join(dir, `${namespace}-${account}.kubeconfig`), { ...access, token, namespace });
    },
    pause: (part) => parts[part].pause(),
    resume: (part) => parts[part].resume(),
    killApiServer: () => parts.apiserver.stop("SIGKILL"),
    async restartApiServer() {
      parts.apiserver.start();
      await apiServerReady(parts, client);
    },
    compactEtcd: () => compact(etcdUrl),
    log: (part) => parts[part].log(),
    stop,
  };
}

const START_MS = 180_000;

type Parts = Readonly<Record<ClusterPart, Program>>;

function partsOf(programs: ClusterPrograms, site: Site, more: readonly string[]): Parts {
  const at = (name: string): string => join(site.dir, name);
  return {
    etcd: defineProgram("etcd", [programs.etcd, ...etcdFlags(site)], at("etcd.log")),
    apiserver: defineProgram("kube-apiserver", [programs.apiServer, ...apiServerFlags(site), ...more], at("apiserver.log")),
    "controller-manager": defineProgram(
      "kube-controller-manager",
      [programs.controllerManager, ...managerFlags(site)],
      at("controller-manager.log"),
    ),
  };
}

async function startParts(parts: Parts, client: KubeClient, { controllerManager = true }: ClusterOptions): Promise<void> {
  parts.etcd.start();
  parts.apiserver.start();
  await apiServerReady(parts, client);
  if (!controllerManager) return;
  parts["controller-manager"].start();
  await eventually(
    "the namespaces have service accounts",
    async () => {
      parts["controller-manager"].assertRunning();
      const accounts = await client.list("ServiceAccount");
      return ["default", "kube-system"].every((namespace) => accounts.some(({ metadata }) => metadata.namespace === namespace));
    },
    START_MS,
  );
}

async function apiServerReady({ etcd, apiserver }: Parts, { api }: KubeClient): Promise<void> {
  await eventually(
    "the API server is ready",
    async () => {
      etcd.assertRunning();
      apiserver.assertRunning();
      return (await api.call({ method: "GET", path: "/readyz" })).body === "ok";
    },
    START_MS,
  );
}

async function compact(etcd: string): Promise<void> {
  const ask = async (path: string, body: object): Promise<unknown> => {
    const response = await fetch(`${etcd}/v3/kv/${path}`, { method: "POST", body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`etcd: ${path}: ${await response.text()}`);
    return response.json();
  };
  const { header } = (await ask("range", { key: "AA==" })) as { readonly header: { readonly revision: string } };
  await ask("compaction", { revision: header.revision, physical: true });
}
