import { join } from "node:path";
import { ageOf } from "../base/age.ts";
import type { Clock } from "../base/clock.ts";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import type { KubeAccess } from "../kube/kube-access.ts";
import { createKubeClient, type KubeClient } from "../kube/kube-client.ts";
import type { ClusterContext, ClusterLink } from "../serve/cluster-link.ts";
import { createClusterSnapshot } from "../sources/kubernetes/cluster-snapshot.ts";
import { type KubernetesSource, kubernetesSource } from "../sources/kubernetes/kubernetes-source.ts";
import { REMOTE_KINDS, type WatchedKind } from "../sources/kubernetes/watched-kinds.ts";
import { clusterCertificates } from "./cluster-certificates.ts";
import { followInjector } from "./cluster-injector.ts";
import { ClusterMesh } from "./cluster-mesh.ts";
import { clusterTokens, type TokenBinding } from "./cluster-tokens.ts";
import { followWebhooks } from "./follow-webhooks.ts";
import { keepStatus } from "./keep-status.ts";
import { meshTokens } from "./mesh-tokens.ts";
import { publishRoots } from "./publish-roots.ts";
import { RegisteredEntries } from "./registered-entries.ts";
import { RemoteClusters } from "./remote-clusters.ts";
import { SecretPermissions } from "./secret-permissions.ts";
import { secretRootStore } from "./secret-root-store.ts";
import { TokenFacts } from "./token-facts.ts";

/** Outside of a pod a cluster that does not answer is waited for this long; then files and what it said before are served. */
const PATIENCE_MS = 5_000;

/** Says which cluster it is and what may be done to it, and begins to follow it. */
export async function connectCluster(options: ClusterContext, access: KubeAccess): Promise<ClusterLink> {
  const { baseDir, clock, config, log } = options;
  const writes = config.process.clusterWrites;
  const { cluster, context, server } = access;
  log.info({ cluster, context, server, mode: writes ? "reads and writes" : "reads only" }, "using the Kubernetes cluster");
  const { client, namespace, mesh, remotes, source, facts, abort, patience } = await follow(options, access);
  const { revision } = config.settings;
  // A pod keeps its state in memory; keys of a cluster are not to be left on the disk of anything else.
  const kept = access.inPod ? join(stateDir(baseDir), "cluster-ca.json") : undefined;
  const keptCertificate = access.inPod ? join(stateDir(baseDir), "server-certificate.json") : undefined;
  const permissions = new SecretPermissions({ client, clock, log });
  return {
    namespace,
    source,
    tokens(objects) {
      const isThere = (binding: TokenBinding): boolean => facts.isThere(binding, objects);
      const known = { keys: facts.keys, issuer: () => facts.issuer, isThere };
      const tokens = clusterTokens({ client, clock, audiences: audiencesOf(config), ...known });
      return meshTokens({ own: { cluster: config.settings.clusterId, tokens }, remotes: remotes.tokens(objects) });
    },
    isRemote: (one) => remotes.has(one),
    mesh: () => mesh.current,
    meshChanged: (changed) => mesh.follow(changed),
    mayReadSecrets: (reader) => (remotes.permissions(reader.clusterId) ?? permissions).mayRead(reader),
    permissionsChanged(changed) {
      permissions.follow(changed);
      remotes.permissionsChanged(changed);
    },
    remotes: (attach) => remotes.follow(attach),
    checks: () => [clusterCheck({ access, writes, source, facts, clock })],
    injector: () => followInjector({ client, namespace, revision, clock, log }, abort.signal),
    keepWebhooks: (served) => followWebhooks({ served, client, namespace, access, config, clock, log }, abort.signal),
    rootStore: (root) =>
      writes ? secretRootStore({ ...root, ...patience, client, namespace, kept, clock, log }, abort.signal) : undefined,
    certificates: () => (writes ? clusterCertificates({ client, kept: keptCertificate, clock, log }, abort.signal) : undefined),
    publishRoots: (published) => publishRoots({ published, client, remotes, namespace, config, clock, log }, abort.signal),
    registrations: (self) =>
      writes ? new RegisteredEntries({ ...self, client, namespaces: config.process.namespaces, clock, log }, abort.signal) : undefined,
    keepStatus: (status) => keepStatus({ source: status, client, namespace, config, clock, log }, abort.signal),
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
  readonly source: KubernetesSource;
  readonly facts: TokenFacts;
  readonly abort: AbortController;
  /** How much longer the cluster is waited for; in a pod for as long as it takes. */
  readonly patience: { readonly patienceMs?: number };
}

/**
 * Begins to read all there is, and waits for what must be known before anything else can be: MeshConfig, and which other clusters there are. The server is
 * at work on long lists while the control plane is put together.
 */
async function follow(options: ClusterContext, access: KubeAccess): Promise<Followed> {
  const { baseDir, clock, config, log } = options;
  const { revision, clusterId, sharedMeshConfig: shared } = config.settings;
  const { namespaces } = config.process;
  const client = createKubeClient(access, clock);
  const namespace = ownNamespace(options, access);
  const state = stateDir(baseDir);
  const mesh = new ClusterMesh({ client, namespace, revision, shared, clock, log, file: join(state, "cluster-mesh.json") });
  const audiences = audiencesOf(config);
  const kinds = remoteKinds(config);
  const remotes = new RemoteClusters({ client, namespace, clusterId, namespaces, kinds, audiences, clock, log, stateDir: state });
  const abort = new AbortController();
  const began = clock.monotonic();
  void mesh.run(abort.signal);
  void remotes.run(abort.signal);
  const snapshot = createClusterSnapshot(join(state, "cluster-state.jsonl"), { server: access.server, clock, log });
  const patience = access.inPod ? {} : { patienceMs: PATIENCE_MS };
  const source = kubernetesSource({ client, namespaces, revision, clock, log, snapshot, ...patience });
  source.begin(abort.signal);
  const facts = new TokenFacts({ client, namespaces, clock, log });
  void facts.run(abort.signal);
  await Promise.all([mesh.ready(access.inPod ? undefined : PATIENCE_MS), remotes.ready(PATIENCE_MS)]);
  const left = Math.max(0, PATIENCE_MS - (clock.monotonic() - began));
  return { client, namespace, mesh, remotes, source, facts, abort, patience: access.inPod ? {} : { patienceMs: left } };
}

/** What is read of other clusters, as far as settings do not switch it off. */
function remoteKinds({ settings }: LoadedMesh): readonly WatchedKind[] {
  const { remoteCredentials, remoteWorkloadEntries } = settings;
  const off = new Set([...(remoteCredentials ? [] : ["Secret"]), ...(remoteWorkloadEntries ? [] : ["WorkloadEntry"])]);
  return REMOTE_KINDS.filter(({ def }) => !off.has(def.kind));
}

const audiencesOf = ({ settings }: LoadedMesh): readonly string[] => settings.tokenAudiences.split(",").map((one) => one.trim());

const stateDir = (baseDir: string): string => join(baseDir, "var/lib/istio");

/** `POD_NAMESPACE`, else that of the context, else `istio-system`. */
const ownNamespace = ({ env, config }: ClusterContext, access: KubeAccess): string =>
  env.POD_NAMESPACE || access.namespace || config.settings.podNamespace;

interface CheckInput {
  readonly access: KubeAccess;
  readonly writes: boolean;
  readonly source: KubernetesSource;
  readonly facts: TokenFacts;
  readonly clock: Clock;
}

function clusterCheck({ access, writes, source, facts, clock }: CheckInput): ReturnType<ClusterLink["checks"]>[number] {
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
