import { join } from "node:path";
import type { TokenVerifier } from "../authn/token-verifier.ts";
import type { Clock } from "../base/clock.ts";
import { contentHash } from "../base/hash.ts";
import type { Log } from "../base/log.ts";
import type { Secret } from "../base/secret.ts";
import { type ConfigObject, inCluster } from "../config/object.ts";
import { remoteKubeAccess } from "../kube/kube-access.ts";
import { createKubeClient, type KubeClient } from "../kube/kube-client.ts";
import { createClusterSnapshot } from "../sources/kubernetes/cluster-snapshot.ts";
import { type KubernetesSource, kubernetesSource } from "../sources/kubernetes/kubernetes-source.ts";
import type { WatchedKind } from "../sources/kubernetes/watched-kinds.ts";
import { clusterTokens } from "./cluster-tokens.ts";
import { SecretPermissions } from "./secret-permissions.ts";
import { TokenFacts } from "./token-facts.ts";

/** The objects in force, by key. */
export interface ObjectsInForce {
  get(key: string): ConfigObject | undefined;
}

export interface RemoteClusterOptions {
  readonly cluster: string;
  /** The Secret that tells of it, and what that says. */
  readonly secret: string;
  readonly kubeconfig: Secret<string>;
  /** Look at these only; empty means all. */
  readonly namespaces: readonly string[];
  readonly kinds: readonly WatchedKind[];
  readonly audiences: readonly string[];
  readonly objects: () => ObjectsInForce | undefined;
  /** It is waited for this long at the start; undefined: it takes the place of another way to the same cluster, which is not to be forgotten. */
  readonly patienceMs: number | undefined;
  readonly stateDir: string;
  readonly permissionsChanged: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

/** Another cluster of the mesh, by one way to it. */
export interface RemoteCluster {
  readonly secret: string;
  readonly digest: string;
  readonly server: string;
  readonly client: KubeClient;
  readonly source: KubernetesSource;
  /** Believes tokens of its service accounts: by its own API server and keys, never by another cluster's. */
  readonly tokens: TokenVerifier;
  readonly permissions: SecretPermissions;
  /** Ends what was begun for it. */
  readonly ending: AbortController;
}

/** Tells one kubeconfig from another without keeping it. */
export const digestOf = (kubeconfig: Secret<string>): string => contentHash(kubeconfig.reveal());

/** Begins to use a cluster. Throws `EdgeError` for a kubeconfig that cannot be used. */
export function openRemote(options: RemoteClusterOptions): RemoteCluster {
  const { cluster, secret, kubeconfig, namespaces, clock, log, stateDir, objects } = options;
  const access = remoteKubeAccess(kubeconfig.reveal(), { clock, title: `Secret ${secret}` });
  const client = createKubeClient(access, clock);
  const ending = new AbortController();
  const facts = new TokenFacts({ client, namespaces, clock, log });
  void facts.run(ending.signal);
  const permissions = new SecretPermissions({ client, clock, log });
  permissions.follow(options.permissionsChanged);
  const file = join(stateDir, `cluster-state-${encodeURIComponent(cluster)}.jsonl`);
  const source = kubernetesSource({
    client,
    name: `kubernetes:${cluster}`,
    cluster,
    kinds: options.kinds,
    namespaces,
    revision: "",
    clock,
    log,
    snapshot: createClusterSnapshot(file, { server: access.server, clock, log }),
    ...(options.patienceMs !== undefined && { patienceMs: options.patienceMs }),
  });
  const there: ObjectsInForce = { get: (key) => objects()?.get(`${key}${inCluster(cluster)}`) };
  const tokens = clusterTokens({
    client,
    clock,
    keys: facts.keys,
    audiences: options.audiences,
    issuer: () => facts.issuer,
    isThere: (binding) => facts.isThere(binding, there),
  });
  return { secret, digest: digestOf(kubeconfig), server: access.server, client, source, tokens, permissions, ending };
}

/** Ends it; what it said stays with whoever took it in. */
export function closeRemote({ client, permissions, ending }: RemoteCluster): void {
  ending.abort();
  permissions.stop();
  client.close();
}
