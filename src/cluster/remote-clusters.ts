import type { TokenVerifier } from "../authn/token-verifier.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { Secret } from "../base/secret.ts";
import type { ConfigSource } from "../config/object.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { Reflector } from "../kube/reflector.ts";
import type { KubeObject, ResourceType } from "../kube/resource-type.ts";
import type { WatchedKind } from "../sources/kubernetes/watched-kinds.ts";
import { closeRemote, digestOf, type ObjectsInForce, openRemote, type RemoteCluster } from "./remote-cluster.ts";
import type { SecretPermissions } from "./secret-permissions.ts";

export interface RemoteClustersOptions {
  readonly client: Pick<KubeClient, "listEach" | "watch">;
  /** Namespace of the control plane, where the Secrets are. */
  readonly namespace: string;
  /** Name of the cluster of this control plane. */
  readonly clusterId: string;
  /** Look at these only; empty means all. */
  readonly namespaces: readonly string[];
  /** What is read of them. */
  readonly kinds: readonly WatchedKind[];
  /** A bound token must name one of them. */
  readonly audiences: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
  /** Where their states are kept. */
  readonly stateDir: string;
}

/** How another cluster is doing. */
export interface RemoteState {
  readonly cluster: string;
  /** The Secret that tells of it. */
  readonly secret: string;
  /** Why what the Secret says now is not in use; what it said before, if anything, is. */
  readonly fault: string | undefined;
}

type Attach = (cluster: string, source: ConfigSource | undefined) => void;

/** The kubeconfigs of a Secret, by cluster. */
type Kubeconfigs = Readonly<Record<string, Secret<string>>>;

const SECRETS: ResourceType = { group: "", version: "v1", plural: "secrets", namespaced: true };
const LABEL = "istio/multiCluster=true";
/** One that does not answer is waited for this long at the start; the others do not wait for it any longer. */
const PATIENCE_MS = 5_000;

/**
 * Other clusters of the mesh, by Secrets labelled `istio/multiCluster: "true"`: each entry is the kubeconfig of the cluster it is named after. They may
 * neither run programs nor read files here. What a Secret changes to that cannot be used changes nothing; a cluster that cannot be reached keeps what it said.
 */
export class RemoteClusters {
  readonly #options: RemoteClustersOptions;
  readonly #reflector: Reflector<Kubeconfigs>;
  readonly #secrets = new Map<string, Kubeconfigs>();
  readonly #remotes = new Map<string, RemoteCluster>();
  readonly #faults = new Map<string, RemoteState>();
  #attach: Attach | undefined;
  #objects: ObjectsInForce | undefined;
  #permissionsChanged: () => void = () => {};
  readonly #followers = new Set<(cluster: string, remote: RemoteCluster) => void>();
  #noted: () => void = () => {};

  constructor(options: RemoteClustersOptions) {
    this.#options = options;
    const { client, namespace, clock, log } = options;
    this.#reflector = new Reflector<Kubeconfigs>({
      client,
      type: SECRETS,
      selection: { namespace, labelSelector: LABEL },
      clock,
      log,
      shape: kubeconfigsIn,
      changed: ({ upserts, deletes }) => {
        for (const [key, found] of upserts) this.#secrets.set(key, found);
        for (const key of deletes) this.#secrets.delete(key);
        this.#settle();
      },
      noted: () => this.#noted(),
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#reflector.run(signal);
  }

  /** Resolves when it is known which clusters there are, or cannot be, or after `patienceMs`. */
  async ready(patienceMs: number): Promise<void> {
    let patient = true;
    const cancel = this.#options.clock.after(patienceMs, () => {
      patient = false;
      this.#noted();
    });
    const isKnown = (): boolean => this.#reflector.state.synced || this.#reflector.state.fault !== undefined;
    while (patient && !isKnown()) {
      await new Promise<void>((resolve) => {
        this.#noted = resolve;
      });
    }
    cancel();
    this.#noted = () => {};
  }

  /** Calls back with sources, for those there are and those to come. */
  follow(attach: Attach): void {
    this.#attach = attach;
    for (const [cluster, { source }] of this.#remotes) attach(cluster, source);
  }

  /** Who believes tokens of each cluster there is now; which pods run there is seen in these objects. */
  tokens(objects: ObjectsInForce): () => ReadonlyMap<string, TokenVerifier> {
    this.#objects = objects;
    return () => new Map([...this.#remotes].map(([cluster, { tokens }]) => [cluster, tokens]));
  }

  has(cluster: string): boolean {
    return this.#remotes.has(cluster);
  }

  /** Who may read Secrets there; undefined for a cluster that is none of these. */
  permissions(cluster: string): SecretPermissions | undefined {
    return this.#remotes.get(cluster)?.permissions;
  }

  permissionsChanged(changed: () => void): void {
    this.#permissionsChanged = changed;
  }

  /** Calls back with each cluster that is opened, those there are at once, until the signal aborts; `ending` of it says until when it is used. */
  whenOpened(opened: (cluster: string, remote: RemoteCluster) => void, signal: AbortSignal): void {
    this.#followers.add(opened);
    signal.addEventListener("abort", () => this.#followers.delete(opened));
    for (const [cluster, remote] of this.#remotes) opened(cluster, remote);
  }

  states(): readonly RemoteState[] {
    const running = [...this.#remotes].map(([cluster, { secret }]) => ({ cluster, secret, fault: undefined }));
    const faulty = [...this.#faults.values()];
    return [...running.filter(({ cluster }) => !this.#faults.has(cluster)), ...faulty].sort((a, b) => (a.cluster < b.cluster ? -1 : 1));
  }

  stop(): void {
    for (const remote of this.#remotes.values()) closeRemote(remote);
  }

  /** Brings what runs to what the Secrets say. Of two that tell of one cluster the first by name counts. */
  #settle(): void {
    this.#faults.clear();
    const wanted = new Map<string, { readonly secret: string; readonly kubeconfig: Secret<string> }>();
    for (const [secret, kubeconfigs] of [...this.#secrets].sort(([a], [b]) => (a < b ? -1 : 1))) {
      for (const [cluster, kubeconfig] of Object.entries(kubeconfigs)) {
        if (cluster === this.#options.clusterId)
          this.#refuse({ cluster, secret, fault: "it is the name of this control plane's own cluster" });
        else if (wanted.has(cluster)) this.#refuse({ cluster, secret, fault: `${wanted.get(cluster)?.secret ?? ""} tells of it, too` });
        else wanted.set(cluster, { secret, kubeconfig });
      }
    }
    for (const cluster of [...this.#remotes.keys()]) if (!wanted.has(cluster)) this.#remove(cluster);
    for (const [cluster, { secret, kubeconfig }] of wanted) this.#use(cluster, secret, kubeconfig);
  }

  #use(cluster: string, secret: string, kubeconfig: Secret<string>): void {
    const { log } = this.#options;
    const before = this.#remotes.get(cluster);
    if (before?.digest === digestOf(kubeconfig)) return;
    try {
      const remote = openRemote({
        ...this.#options,
        cluster,
        secret,
        kubeconfig,
        objects: () => this.#objects,
        permissionsChanged: () => this.#permissionsChanged(),
        // A new way to a cluster that is known must not begin by forgetting what it said.
        patienceMs: before === undefined ? PATIENCE_MS : undefined,
      });
      this.#remotes.set(cluster, remote);
      log.info(
        { cluster, secret, server: remote.server },
        before === undefined ? "reading another cluster" : "reading a cluster in another way",
      );
      this.#attach?.(cluster, remote.source);
      for (const opened of this.#followers) opened(cluster, remote);
      if (before !== undefined) closeRemote(before);
    } catch (error) {
      this.#refuse({ cluster, secret, fault: messageOf(error) });
    }
  }

  #remove(cluster: string): void {
    this.#options.log.info({ cluster }, "a cluster is no longer read");
    this.#attach?.(cluster, undefined);
    const remote = this.#remotes.get(cluster);
    if (remote !== undefined) closeRemote(remote);
    this.#remotes.delete(cluster);
  }

  #refuse(state: RemoteState): void {
    this.#faults.set(state.cluster, state);
    this.#options.log.warn(
      { cluster: state.cluster, secret: state.secret, reason: state.fault },
      "a kubeconfig for another cluster is not used",
    );
  }
}

function kubeconfigsIn({ data }: KubeObject): Kubeconfigs {
  const entries = Object.entries((typeof data === "object" && data !== null ? data : {}) as Readonly<Record<string, unknown>>);
  return Object.fromEntries(
    entries.flatMap(([cluster, value]) =>
      typeof value === "string" && value !== "" ? [[cluster, new Secret(Buffer.from(value, "base64").toString("utf8"))] as const] : [],
    ),
  );
}
