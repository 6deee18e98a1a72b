import { join } from "node:path";
import type { TokenVerifier } from "../authn/token-verifier.ts";
import type { Clock } from "../base/clock.ts";
import { EdgeError, messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { RootStore } from "../ca/root-store.ts";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import type { MeshText } from "../config/mesh/mesh-files.ts";
import type { ConfigObject, ConfigSource } from "../config/object.ts";
import { findKubeAccess, type KubeAccess } from "../kube/kube-access.ts";
import { createKubeClient, type KubeClient } from "../kube/kube-client.ts";
import { createClusterSnapshot } from "../sources/kubernetes/cluster-snapshot.ts";
import { ageOf, type KubernetesSource, kubernetesSource } from "../sources/kubernetes/kubernetes-source.ts";
import type { ServedWebhooks } from "../webhooks/served-webhooks.ts";
import { type ClusterInjector, followInjector } from "./cluster-injector.ts";
import { ClusterMesh } from "./cluster-mesh.ts";
import { clusterTokens } from "./cluster-tokens.ts";
import { followWebhooks } from "./follow-webhooks.ts";
import { publishRoots } from "./publish-roots.ts";
import { RemoteClusters } from "./remote-clusters.ts";
import type { PublishedRoots } from "./root-config-maps.ts";
import { SecretPermissions, type SecretReader } from "./secret-permissions.ts";
import { secretRootStore } from "./secret-root-store.ts";
import { TokenFacts } from "./token-facts.ts";

export interface ConnectOptions {
  readonly baseDir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly log: Log;
  /** What the files of the mesh say. */
  readonly config: LoadedMesh;
  /** There must be a cluster: `k8s://` is written, not assumed. */
  readonly demanded: boolean;
}

/** A cluster that is followed. */
export interface ConnectedCluster {
  readonly client: KubeClient;
  readonly access: KubeAccess;
  /** Of this control plane. */
  readonly namespace: string;
  readonly writes: boolean;
  readonly source: KubernetesSource;
  tokens(objects: { get(key: string): ConfigObject | undefined }): TokenVerifier;
  mayReadSecrets(reader: SecretReader): boolean | undefined;
  permissionsChanged(changed: () => void): void;
  /** Calls back with the sources of other clusters, as those come, change and go. */
  remotes(attach: (cluster: string, source: ConfigSource | undefined) => void): void;
  mesh(): MeshText | undefined;
  meshChanged(changed: () => void): void;
  checks(): readonly { readonly name: string; readonly ok: boolean; readonly blocks: boolean; readonly detail: string }[];
  /** Begins to follow the injector's ConfigMap. */
  injector(): ClusterInjector;
  /** Creates and keeps the webhook configurations that lead here; not where the cluster is only read. */
  keepWebhooks(served: ServedWebhooks): void;
  /** The CA in a Secret; undefined where the cluster is only read. */
  rootStore(root: RootOfCluster): RootStore | undefined;
  /** Keeps the ConfigMap with the roots in every namespace; not where the cluster is only read. */
  publishRoots(published: PublishedRoots): void;
  stop(): void;
}

/** How a root is made where the cluster has no CA. */
export interface RootOfCluster {
  /** Where a CA in files would be. */
  readonly directory: string;
  readonly trustDomain: string;
  readonly rootTtlMs: number;
}

/** Outside of a pod a cluster that does not answer is waited for this long; then files and what it said before are served. */
const PATIENCE_MS = 5_000;

/** Finds the cluster, says which it is and what may be done to it, and begins to follow it. */
export async function connectCluster(options: ConnectOptions): Promise<ConnectedCluster | undefined> {
  const { baseDir, clock, config, log } = options;
  const access = await usableAccess(options);
  if (access === undefined) return undefined;
  const writes = config.process.clusterWrites;
  const { cluster, context, server } = access;
  log.info({ cluster, context, server, mode: writes ? "reads and writes" : "reads only" }, "using the Kubernetes cluster");
  const { client, namespace, mesh, remotes, abort, patience } = await follow(options, access);
  const { revision } = config.settings;
  const { namespaces } = config.process;
  const source = kubernetesSource({
    client,
    namespaces,
    revision,
    clock,
    log,
    snapshot: createClusterSnapshot(join(stateDir(baseDir), "cluster-state.jsonl"), { server, clock, log }),
    ...patience,
  });
  const facts = new TokenFacts({ client, namespaces, clock, log });
  void facts.run(abort.signal);
  // A pod keeps its state in memory; keys of a cluster are not to be left on the disk of anything else.
  const kept = access.inPod ? join(stateDir(baseDir), "cluster-ca.json") : undefined;
  const permissions = new SecretPermissions({ client, clock, log });
  return {
    client,
    access,
    namespace,
    writes,
    source,
    tokens: (objects) =>
      clusterTokens({
        client,
        clock,
        keys: facts.keys,
        audiences: config.settings.tokenAudiences.split(",").map((one) => one.trim()),
        issuer: () => facts.issuer,
        isThere: (binding) => facts.isThere(binding, objects),
      }),
    mesh: () => mesh.current,
    meshChanged: (changed) => mesh.follow(changed),
    mayReadSecrets: (reader) => permissions.mayRead(reader),
    permissionsChanged: (changed) => permissions.follow(changed),
    remotes: (attach) => remotes.follow(attach),
    checks: () => [clusterCheck({ access, writes, source, facts, clock })],
    injector: () => followInjector({ client, namespace, revision, clock, log }, abort.signal),
    keepWebhooks: (served) => followWebhooks({ served, client, namespace, access, config, clock, log }, abort.signal),
    rootStore: (root) => (writes ? secretRootStore({ ...root, client, namespace, kept, clock, log }, abort.signal) : undefined),
    publishRoots: (published) => publishRoots({ published, client, namespace, config, clock, log }, abort.signal),
    stop() {
      abort.abort();
      remotes.stop();
      permissions.stop();
      client.close();
    },
  };
}

interface Followed {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly mesh: ClusterMesh;
  readonly remotes: RemoteClusters;
  readonly abort: AbortController;
  /** How much longer the cluster is waited for; in a pod for as long as it takes. */
  readonly patience: { readonly patienceMs?: number };
}

/** Begins with what must be known before anything else can: MeshConfig, and which other clusters there are. */
async function follow(options: ConnectOptions, access: KubeAccess): Promise<Followed> {
  const { baseDir, clock, config, log } = options;
  const { revision, clusterId } = config.settings;
  const { namespaces } = config.process;
  const client = createKubeClient(access, clock);
  const namespace = ownNamespace(options, access);
  const state = stateDir(baseDir);
  const mesh = new ClusterMesh({ client, namespace, revision, clock, log, file: join(state, "cluster-mesh.json") });
  const remotes = new RemoteClusters({ client, namespace, clusterId, namespaces, clock, log, stateDir: state });
  const abort = new AbortController();
  const began = clock.monotonic();
  void mesh.run(abort.signal);
  void remotes.run(abort.signal);
  await Promise.all([mesh.ready(access.inPod ? undefined : PATIENCE_MS), remotes.ready(PATIENCE_MS)]);
  const left = Math.max(0, PATIENCE_MS - (clock.monotonic() - began));
  return { client, namespace, mesh, remotes, abort, patience: access.inPod ? {} : { patienceMs: left } };
}

const stateDir = (baseDir: string): string => join(baseDir, "var/lib/istio");

/** A kubeconfig that is merely lying around must not keep a control plane from starting on files; one that is asked for must be right. */
async function usableAccess({ env, clock, demanded, log }: ConnectOptions): Promise<KubeAccess | undefined> {
  const inPod = (env.KUBERNETES_SERVICE_HOST ?? "") !== "";
  try {
    const access = await findKubeAccess({ env, clock });
    if (access === undefined && demanded)
      throw new EdgeError("kubernetes_unusable", "k8s:// is configured, but there is no cluster", {
        hint: "run in a pod, or set KUBECONFIG to a file that is there",
      });
    return access;
  } catch (error) {
    if (demanded || inPod) throw error;
    log.warn({ reason: messageOf(error) }, "the kubeconfig cannot be used; going on without Kubernetes");
    return undefined;
  }
}

/** `POD_NAMESPACE`, else that of the context, else `istio-system`. */
const ownNamespace = ({ env, config }: ConnectOptions, access: KubeAccess): string =>
  env.POD_NAMESPACE || access.namespace || config.settings.podNamespace;

interface CheckInput {
  readonly access: KubeAccess;
  readonly writes: boolean;
  readonly source: KubernetesSource;
  readonly facts: TokenFacts;
  readonly clock: Clock;
}

function clusterCheck({ access, writes, source, facts, clock }: CheckInput): ReturnType<ConnectedCluster["checks"]>[number] {
  const health = source.sourceHealth();
  const notes = [
    `cluster ${access.cluster}, context ${access.context}, ${writes ? "reads and writes" : "reads only"}, ${health.objects} objects`,
    ...(health.absentKinds.length > 0 ? [`not installed: ${health.absentKinds.join(", ")}`] : []),
    ...(health.withheldKinds.length > 0 ? [`may not be read: ${health.withheldKinds.join(", ")}`] : []),
    facts.complete ? "tokens of running pods are judged here" : "tokens are for the API server to judge",
    ...(health.differences > 0 ? [`${health.differences} events never came and were found by comparing`] : []),
    ...(health.message === undefined ? [] : [`stale for ${ageOf(clock.now() - (health.since ?? clock.now()))}: ${health.message}`]),
  ];
  return { name: "cluster", ok: health.state === "ok", blocks: false, detail: notes.join("; ") };
}
