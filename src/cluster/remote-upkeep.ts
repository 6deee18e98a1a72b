import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { KubeError } from "../kube/kube-error.ts";
import { Reflector } from "../kube/reflector.ts";
import type { KubeObject, ResourceType } from "../kube/resource-type.ts";
import type { PublishedRoots } from "../serve/cluster-link.ts";
import { patchInjectorRoots } from "./injector-roots.ts";
import { keepRootBundle } from "./root-bundle.ts";
import { keepRevocationConfigMaps, keepRootConfigMaps } from "./root-config-maps.ts";

export interface RemoteUpkeepOptions {
  /** The cluster that is kept, and the way to it. */
  readonly cluster: string;
  readonly client: KubeClient;
  /** Of the control plane, in every cluster. */
  readonly namespace: string;
  /** Name of this control plane's cluster. */
  readonly clusterId: string;
  readonly revision: string;
  /** Only these; empty: all. */
  readonly namespaces: readonly string[];
  /** One ClusterTrustBundle has the roots, instead of a ConfigMap in every namespace. */
  readonly trustBundles: boolean;
  /** What the CA has revoked is in a ConfigMap of every namespace. */
  readonly publishRevoked: boolean;
  readonly published: PublishedRoots;
  readonly clock: Clock;
  readonly log: Log;
}

/** On the namespace of the control plane in a cluster: names of the clusters whose control planes serve it, or `*`. */
const SERVED_BY = "topology.istio.io/controlPlaneClusters";
const NAMESPACES: ResourceType = { group: "", version: "v1", plural: "namespaces", namespaced: false };
const LOOK_MS = 10_000;

/**
 * Looks after a cluster that has no control plane of its own (`EXTERNAL_ISTIOD`), as long as its namespace for one says that ours serves it: the roots in every
 * namespace, and in the webhooks that lead pods to us. Ends with the signal; only one replica at a time should.
 */
export async function keepRemote(options: RemoteUpkeepOptions, signal: AbortSignal): Promise<void> {
  const { cluster, client, namespace, clusterId, clock, log } = options;
  let term: AbortController | undefined;
  const settle = (isServed: boolean): void => {
    if (isServed === (term !== undefined)) return;
    term?.abort();
    term = isServed ? new AbortController() : undefined;
    log.info(
      { cluster },
      isServed ? "looking after roots and webhooks of a cluster" : "roots and webhooks of a cluster are left to others",
    );
    if (term === undefined) return;
    const both = AbortSignal.any([signal, term.signal]);
    const everywhere = { ...options, client: patchingByAnyMeans(client) };
    if (options.trustBundles) void keepRootBundle(options, both);
    else void keepRootConfigMaps(everywhere, both);
    if (options.publishRevoked) void keepRevocationConfigMaps(everywhere, both);
    void keepInjector(options, both);
  };
  const reflector = new Reflector<boolean>({
    client,
    type: NAMESPACES,
    selection: { fieldSelector: `metadata.name=${namespace}`, metadataOnly: true },
    clock,
    log,
    shape: ({ metadata }) => isServedBy(metadata.annotations?.[SERVED_BY] ?? "", clusterId),
    changed({ upserts, deletes }) {
      for (const isServed of upserts.values()) settle(isServed);
      if (deletes.length > 0) settle(false);
    },
  });
  await reflector.run(signal);
  term?.abort();
}

const isServedBy = (clusters: string, own: string): boolean =>
  clusters.split(",").some((one) => one.trim() === "*" || (one.trim() !== "" && one.trim() === own));

async function keepInjector({ cluster, client, revision, published, clock, log }: RemoteUpkeepOptions, signal: AbortSignal): Promise<void> {
  let told = "";
  while (!signal.aborted) {
    try {
      for (const name of await patchInjectorRoots({ client, revision, roots: published.roots() }))
        log.info({ cluster, name }, "brought a webhook configuration up to date");
      told = "";
    } catch (error) {
      if (messageOf(error) !== told && !signal.aborted)
        log.warn({ cluster, reason: messageOf(error) }, "webhook configurations of a cluster cannot be kept current");
      told = messageOf(error);
    }
    await clock.sleep(LOOK_MS, signal).catch(() => undefined);
  }
}

/** Istio's role for control planes of other clusters lets ConfigMaps be updated and not patched. */
function patchingByAnyMeans(client: KubeClient): Pick<KubeClient, "listEach" | "watch" | "create" | "patch"> {
  return {
    listEach: client.listEach,
    watch: client.watch,
    create: client.create,
    async patch(type, place, patch) {
      try {
        return await client.patch(type, place, patch);
      } catch (error) {
        if (!(error instanceof KubeError && error.isForbidden)) throw error;
        const { fieldManager, signal } = patch;
        const current = await client.get(type, place, signal);
        const next: KubeObject = { ...current, ...(patch.body as Readonly<Record<string, unknown>>) };
        return client.update(type, next, { ...(fieldManager !== undefined && { fieldManager }), ...(signal !== undefined && { signal }) });
      }
    },
  };
}
