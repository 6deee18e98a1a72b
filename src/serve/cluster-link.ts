import type { TokenVerifier } from "../authn/token-verifier.ts";
import type { Clock } from "../base/clock.ts";
import { EdgeError } from "../base/errors.ts";
import type { LabelSelector } from "../base/labels.ts";
import type { Log } from "../base/log.ts";
import type { CertificateApi } from "../ca/certificate-api.ts";
import type { RootStore } from "../ca/root-store.ts";
import { type LoadedMesh, loadMesh, type MeshLoadGood } from "../config/mesh/load-mesh.ts";
import type { MeshText } from "../config/mesh/mesh-files.ts";
import { meshProblemsSentence } from "../config/mesh/mesh-problems.ts";
import type { ConfigObject, ConfigSource } from "../config/object.ts";
import type { StatusSource } from "../config/status/object-report.ts";
import type { InjectionTexts } from "../inject/read-injection.ts";
import type { RegistrationBoard } from "../sources/registered/registration-board.ts";
import type { ServedWebhooks } from "../webhooks/served-webhooks.ts";
import type { HealthCheck } from "./health.ts";
import type { Self } from "./registrations.ts";
import type { SourceMaker } from "./running-sources.ts";

/** What a program that knows Kubernetes gives the control plane. The control plane itself links no client. */
export interface ClusterLink {
  /** Of this control plane. */
  readonly namespace: string;
  /** Its objects: what `k8s://` means. */
  readonly source: ConfigSource;
  /** MeshConfig as the cluster has it; undefined where it has none. */
  mesh(): MeshText | undefined;
  /** Calls back whenever that changes. */
  meshChanged(changed: () => void): void;
  /** Believes tokens of its service accounts; `objects` are those in force. */
  tokens(objects: { get(key: string): ConfigObject | undefined }): TokenVerifier;
  /** Whether a service account may read the Secrets of its namespace, in the cluster it is in; undefined while that is not known. */
  mayReadSecrets(reader: { readonly namespace: string; readonly serviceAccount: string; readonly clusterId: string }): boolean | undefined;
  /** Whether it is one of the other clusters of the mesh. */
  isRemote(cluster: string): boolean;
  /** Calls back when such an answer becomes another one. */
  permissionsChanged(changed: () => void): void;
  /** Calls back with the sources of other clusters that it tells of, as those come, change and go. */
  remotes(attach: (cluster: string, source: ConfigSource | undefined) => void): void;
  checks(): readonly HealthCheck[];
  /** Begins to follow what the cluster says about injection. */
  injector(): ClusterInjection;
  /** Tells the cluster of the webhooks that are served here, and goes on doing so until it is stopped. */
  keepWebhooks(served: ServedWebhooks): void;
  /** Where the cluster keeps the CA; undefined where it is only read. */
  rootStore(root: ClusterRoot): RootStore | undefined;
  /** The cluster's API for certificates; undefined where it is only read. */
  certificates(): CertificateApi | undefined;
  /** Tells every namespace of the roots, and goes on doing so until it is stopped. */
  publishRoots(published: PublishedRoots): void;
  /** Keeps the WorkloadEntries of workloads that are connected to this replica, for others to see; undefined where the cluster is only read. */
  registrations(self: Self): RegistrationBoard | undefined;
  /** Writes how its objects stand into their status, and goes on doing so until it is stopped. */
  keepStatus(source: StatusSource): void;
  stop(): void;
}

/** How a root is made where the cluster has no CA. */
export interface ClusterRoot {
  /** A CA in files counts where the cluster has none. */
  readonly directory: string;
  readonly trustDomain: string;
  readonly rootTtlMs: number;
}

/** Roots that pods of a cluster verify istiod and each other with. */
export interface PublishedRoots {
  /** In PEM; empty as long as there are none. */
  roots(): string;
  /** Lists of certificates that the CA has revoked, in PEM; empty as long as there are none. */
  revoked(): string;
  /** Namespaces that count (MeshConfig `discoverySelectors`). */
  selectors(): readonly LabelSelector[];
}

/** The configuration of injection in a cluster. */
export interface ClusterInjection {
  /** Undefined where the cluster has none. */
  readonly current: InjectionTexts | undefined;
  /** Resolves when that is known, or after a while without it. */
  ready(): Promise<void>;
  /** Calls back whenever it changes. */
  follow(changed: () => void): void;
}

export interface ClusterContext {
  readonly baseDir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly clock: Clock;
  readonly log: Log;
  /** What the files say, before the cluster adds anything. */
  readonly config: LoadedMesh;
  /** `k8s://` is written in mesh.yaml, not assumed: then there must be a cluster. */
  readonly demanded: boolean;
}

/** Finds the cluster and begins to follow it; undefined where there is none. */
export type ConnectCluster = (context: ClusterContext) => Promise<ClusterLink | undefined>;

export interface LinkOptions extends Pick<ClusterContext, "baseDir" | "env" | "clock" | "log"> {
  readonly connect?: ConnectCluster;
}

/** The configuration of the mesh with what the cluster adds to it, and the cluster. Throws `EdgeError` for a configuration that is wrong. */
export async function linkCluster(options: LinkOptions): Promise<{ readonly load: MeshLoadGood; readonly link: ClusterLink | undefined }> {
  const { baseDir, env, clock, log, connect } = options;
  const alone = goodOf(await loadMesh(baseDir, env));
  const wanted = alone.config.process.configSources.find(({ scheme }) => scheme === "k8s");
  if (connect === undefined || wanted === undefined) return { load: alone, link: undefined };
  const link = await connect({ baseDir, env, clock, log, config: alone.config, demanded: !wanted.assumed });
  if (link?.mesh() === undefined) return { load: alone, link };
  try {
    return { load: goodOf(await loadMesh(baseDir, env, link.mesh())), link };
  } catch (error) {
    link.stop();
    throw error;
  }
}

/** The source of `k8s://`, where there is a cluster. */
export const clusterSource =
  (link: ClusterLink | undefined): SourceMaker =>
  ({ scheme }) =>
    scheme === "k8s" ? link?.source : undefined;

function goodOf(load: Awaited<ReturnType<typeof loadMesh>>): MeshLoadGood {
  if (load.ok) return load;
  const isFile = load.problems[0]?.file !== undefined;
  throw new EdgeError("mesh_config_invalid", meshProblemsSentence(load.problems), {
    hint: isFile
      ? "correct it; `istioctl validate FILE` lists all that is wrong"
      : "correct or unset it; docs/settings.md lists all variables",
  });
}
