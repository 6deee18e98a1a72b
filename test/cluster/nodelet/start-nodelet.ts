import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { messageOf } from "../../../src/base/errors.ts";
import { eventually } from "../../support/wait.ts";
import type { KubeClient } from "../kube-client.ts";
import type { KubeObject } from "../kube-object.ts";
import type { Cluster } from "../start-cluster.ts";
import { keyOf, watchAll } from "../watch.ts";
import type { ExecResult } from "./container-process.ts";
import type { Images } from "./image.ts";
import type { NodeNetwork } from "./node-network.ts";
import { CAPACITY, nodeLabels, registerNode } from "./node-object.ts";
import type { Pod } from "./pod.ts";
import { type PodSurroundings, PodWorker } from "./pod-worker.ts";
import { bindPod, chooseNode, needsNode, type SchedulerNode } from "./scheduler.ts";
import { serveServices } from "./service-node.ts";

export interface NodeletOptions {
  readonly cluster: Cluster;
  readonly network: NodeNetwork;
  readonly images: Images;
  /** Nodes by name, with labels; one called `node` unless told. All are this machine, with one address. */
  readonly nodes?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Names outside the cluster and their addresses. */
  readonly names?: Readonly<Record<string, readonly string[]>>;
  /** How long a container that ended waits for its first restart; doubles up to 30 s. */
  readonly firstBackOffMs?: number;
}

/** Nodes of a cluster whose pods run on this machine. */
export interface Nodelet {
  /** Runs something in a container (the first one unless told) of the pod `namespace/name`. */
  exec(pod: string, command: readonly string[], options?: ExecOptions): Promise<ExecResult>;
  /** What a container has written so far. */
  logs(pod: string, container?: string): string;
  /** Gives a pod new service-account tokens before their time. */
  rotateTokens(pod: string): Promise<void>;
  /** Resolves with the pods that a selector chooses when there are so many of them and all are ready. */
  readyPods(namespace: string, labelSelector: string, options?: ReadyOptions): Promise<readonly Pod[]>;
  /** Ends all pods at once. */
  stop(): Promise<void>;
}

export interface ExecOptions {
  readonly container?: string;
  readonly timeoutMs?: number;
}

export interface ReadyOptions {
  /** 1 unless told. */
  readonly count?: number;
  readonly timeoutMs?: number;
}

/** Registers nodes and runs the pods that are bound to them; unbound pods it binds itself. */
export async function startNodelet(options: NodeletOptions): Promise<Nodelet> {
  const { cluster, network, images, nodes = { node: {} }, names = {}, firstBackOffMs = 500 } = options;
  const { client } = cluster;
  const ending = new AbortController();
  const dir = join(cluster.dir, "pods");
  await mkdir(dir);
  const known = Object.entries(nodes).map(([name, labels]) => ({ name, labels: nodeLabels(name, labels) }));
  for (const node of known) await registerNode(client, node, network);
  await serveServices({ client, network, names, signal: ending.signal });
  const apiAddress = network.dnsAddress.replace(/\d+$/, "1");
  const keeper = keepPods({ client, network, images, dir, capacity: CAPACITY, apiAddress, firstBackOffMs }, known);
  void watchAll<Pod>({ client, resource: "Pod", signal: ending.signal, changed: keeper.changed });
  followObjects(client, ending.signal, keeper.refreshVolumes);
  return {
    exec: (pod, command, { container, timeoutMs = 60_000 } = {}) => keeper.worker(pod).exec(container, command, timeoutMs),
    logs: (pod, container) => keeper.worker(pod).logs(container),
    rotateTokens: (pod) => keeper.worker(pod).rotateTokens(),
    readyPods: (namespace, labelSelector, { count = 1, timeoutMs = 180_000 } = {}) =>
      eventually(
        `${count} pods ${labelSelector} are ready`,
        async () => {
          const pods = await client.list<Pod>("Pod", { namespace, labelSelector });
          if (pods.length === count && pods.every(isReady)) return pods;
          throw new Error(pods.map((pod) => `${pod.metadata.name}: ${JSON.stringify(pod.status)}`).join("\n"));
        },
        timeoutMs,
      ),
    async stop() {
      ending.abort();
      await keeper.stop();
    },
  };
}

const isReady = ({ metadata, status }: Pod): boolean =>
  metadata.deletionTimestamp === undefined &&
  status?.conditions?.some(({ type, status: holds }) => type === "Ready" && holds === "True") === true;

const TOKEN_CHECK_MS = 30_000;

/** Tells in which namespaces ConfigMaps or Secrets have changed; now and then all of them, since tokens change by themselves. */
function followObjects(client: KubeClient, signal: AbortSignal, changed: (namespaces: ReadonlySet<string> | undefined) => void): void {
  for (const resource of ["ConfigMap", "Secret"]) {
    let seen = new Map<string, string | undefined>();
    const compare = (objects: ReadonlyMap<string, KubeObject>): void => {
      const now = new Map([...objects].map(([key, { metadata }]) => [key, metadata.resourceVersion]));
      const differing = [...now.keys(), ...seen.keys()].filter((key) => now.get(key) !== seen.get(key));
      seen = now;
      changed(new Set(differing.map((key) => key.split("/")[0] ?? "")));
    };
    void watchAll({ client, resource, signal, changed: compare });
  }
  const check = (): void => {
    changed(undefined);
    const cancel = systemClock.after(TOKEN_CHECK_MS, check);
    signal.addEventListener("abort", cancel, { once: true });
  };
  systemClock.after(TOKEN_CHECK_MS, () => signal.aborted || check());
}

interface PodKeeper {
  /** In some namespaces, or in all. */
  refreshVolumes(namespaces: ReadonlySet<string> | undefined): void;
  changed(pods: ReadonlyMap<string, Pod>): void;
  worker(name: string): PodWorker;
  stop(): Promise<void>;
}

/** A worker for each pod of ours that there is, and a node for each pod without one. */
function keepPods(around: PodSurroundings, nodes: readonly SchedulerNode[]): PodKeeper {
  const workers = new Map<string, PodWorker>();
  const bound = new Set<string>();
  const ends: Promise<unknown>[] = [];
  const drop = (key: string, worker: PodWorker): void => {
    workers.delete(key);
    ends.push(worker.destroy());
  };
  const place = (pod: Pod, pods: readonly Pod[]): void => {
    const { uid = "" } = pod.metadata;
    const node = chooseNode(pod, nodes, pods);
    if (node === undefined || bound.has(uid)) return;
    bound.add(uid);
    bindPod(around.client, pod, node).catch(() => bound.delete(uid));
  };
  return {
    changed(pods) {
      for (const [key, worker] of workers) if (pods.get(key)?.metadata.uid !== worker.uid) drop(key, worker);
      for (const pod of pods.values()) {
        if (needsNode(pod)) place(pod, [...pods.values()]);
        if (!nodes.some(({ name }) => name === pod.spec.nodeName)) continue;
        const existing = workers.get(keyOf(pod));
        const worker = existing ?? new PodWorker(pod, around);
        if (existing === undefined) {
          workers.set(keyOf(pod), worker);
          worker.run().catch((error: unknown) => process.stderr.write(`pod ${keyOf(pod)}: ${messageOf(error)}\n`));
        }
        worker.update(pod);
      }
    },
    refreshVolumes(namespaces) {
      for (const worker of workers.values()) if (namespaces?.has(worker.namespace ?? "") !== false) worker.refreshVolumes();
    },
    worker(name) {
      const found = workers.get(name);
      if (found === undefined) throw new Error(`no pod ${name} runs here`);
      return found;
    },
    async stop() {
      for (const [key, worker] of workers) drop(key, worker);
      await Promise.all(ends);
    },
  };
}
