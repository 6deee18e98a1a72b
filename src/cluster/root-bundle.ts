import { BackOff } from "../base/back-off.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { KubeError } from "../kube/kube-error.ts";
import { Reflector } from "../kube/reflector.ts";
import type { ResourceType } from "../kube/resource-type.ts";
import type { PublishedRoots } from "../serve/cluster-link.ts";
import { hashOfRoots } from "./root-config-maps.ts";
import { BUNDLES, bundleIn, servedVersion } from "./trust-bundles.ts";

export interface RootBundleOptions {
  readonly client: Pick<KubeClient, "listEach" | "watch" | "request" | "create" | "update" | "get">;
  readonly published: Pick<PublishedRoots, "roots">;
  readonly clock: Clock;
  readonly log: Log;
}

/** Istio's names, which injected pods mount it by. */
const SIGNER = "istio.io/istiod-ca";
const NAME = "istio.io:istiod-ca:root-cert";
const LOOK_MS = 1_000;
const RETRY = { firstMs: 1_000, mostMs: 60_000 };
const RIGHTS = "the rights are in deploy/trust-bundle.yaml";

/**
 * Keeps the roots in one ClusterTrustBundle for the whole cluster, as Istio does with `ENABLE_CLUSTER_TRUST_BUNDLE_API`, instead of a ConfigMap in every namespace: made
 * where it is missing, corrected where it holds others. Until the signal aborts; only one replica at a time should.
 */
export async function keepRootBundle(options: RootBundleOptions, signal: AbortSignal): Promise<void> {
  const { client, clock, log } = options;
  const absent = (): void =>
    log.warn({ bundle: NAME }, "the cluster has no ClusterTrustBundles, so its pods cannot be told the roots: switch that API on");
  const version = await servedVersion({ client, clock }, { signal, absent });
  if (version === undefined) return;
  const keeper = new Keeper(options, { ...BUNDLES, version, namespaced: false });
  await Promise.all([keeper.reflector.run(signal), keeper.run(signal)]);
}

class Keeper {
  readonly #options: RootBundleOptions;
  readonly #type: ResourceType;
  readonly #backOff = new BackOff(RETRY);
  readonly reflector: Pick<Reflector<string>, "run" | "state">;
  /** Hash of the roots that are in the bundle; undefined where there is none. */
  #held: string | undefined;
  #fault = "";
  #wake: () => void = () => {};

  constructor(options: RootBundleOptions, type: ResourceType) {
    this.#options = options;
    this.#type = type;
    const { client, clock, log } = options;
    this.reflector = new Reflector<string>({
      client,
      type,
      selection: { fieldSelector: `metadata.name=${NAME}` },
      clock,
      log,
      shape: (object) => hashOfRoots(bundleIn(object) ?? ""),
      changed: ({ upserts, deletes }) => {
        for (const hash of upserts.values()) this.#held = hash;
        if (deletes.length > 0) this.#held = undefined;
      },
      noted: () => this.#wake(),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const waitMs = await this.#look(signal).then(
        () => this.#worked(),
        (error: unknown) => this.#failed(messageOf(error), signal),
      );
      const heard = new AbortController();
      if (this.#fault === "") this.#wake = () => heard.abort();
      await this.#options.clock.sleep(waitMs, AbortSignal.any([signal, heard.signal])).catch(() => undefined);
      this.#wake = () => {};
    }
  }

  /** Nothing is written before it is known what is there. */
  async #look(signal: AbortSignal): Promise<void> {
    const { published, log } = this.#options;
    const roots = published.roots();
    const { synced, fault } = this.reflector.state;
    if (!synced && fault !== undefined) throw fault;
    if (!synced || roots === "" || this.#held === hashOfRoots(roots)) return;
    await this.#write(roots, signal);
    this.#held = hashOfRoots(roots);
    log.info({ bundle: NAME }, "published the roots in a ClusterTrustBundle");
  }

  async #write(trustBundle: string, signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    const options = { fieldManager: "istiod", signal };
    const spec = { signerName: SIGNER, trustBundle };
    const current = await client.get(this.#type, { name: NAME }, signal).catch(orMissing);
    if (current !== undefined) await client.update(this.#type, { ...current, spec }, options);
    else {
      const apiVersion = `${this.#type.group}/${this.#type.version}`;
      await client.create(this.#type, { apiVersion, kind: "ClusterTrustBundle", metadata: { name: NAME }, spec }, options);
    }
  }

  #worked(): number {
    this.#backOff.reset();
    this.#fault = "";
    return LOOK_MS;
  }

  #failed(reason: string, signal: AbortSignal): number {
    if (reason !== this.#fault && !signal.aborted)
      this.#options.log.warn({ bundle: NAME, reason }, `the roots cannot be published in a ClusterTrustBundle; ${RIGHTS}`);
    this.#fault = reason;
    return this.#backOff.next();
  }
}

function orMissing(error: unknown): undefined {
  if (error instanceof KubeError && error.isNotFound) return undefined;
  throw error;
}
