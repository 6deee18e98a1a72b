import { type Clock, waitAtMost } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { PublishedBundle } from "../ca/certificate-api.ts";
import { installedKinds, wantedKey } from "../kube/discovery.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { Reflector } from "../kube/reflector.ts";
import type { KubeObject } from "../kube/resource-type.ts";

export interface TrustBundleOptions {
  readonly client: Pick<KubeClient, "listEach" | "watch" | "request">;
  readonly signer: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** ClusterTrustBundles. The API is young: a cluster has one of these versions, or none. */
export const BUNDLES = { group: "certificates.k8s.io", versions: ["v1", "v1beta1", "v1alpha1"], plural: "clustertrustbundles" } as const;
const PATIENCE_MS = 3_000;
const ASK_AGAIN_MS = 10_000;
/** An API that is off comes with another start of the API server. */
const LOOK_AGAIN_MS = 300_000;

/** Follows the ClusterTrustBundles of one signer until the signal aborts; there are none as long as the cluster does not have the API, or does not let us read it. */
export function followTrustBundle({ client, signer, clock, log }: TrustBundleOptions, signal: AbortSignal): PublishedBundle {
  const texts = new Map<string, string>();
  const followers = new Set<() => void>();
  const known = Promise.withResolvers<void>();
  let current = "";
  const settle = (): void => {
    const next = [...texts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => (text.endsWith("\n") ? text : `${text}\n`));
    const before = current;
    current = next.join("");
    if (before !== current) for (const changed of followers) changed();
  };
  const run = async (): Promise<void> => {
    const version = await servedVersion({ client, clock }, { signal, absent: () => known.resolve() });
    if (version === undefined) return;
    const reflector = new Reflector<string>({
      client,
      type: { ...BUNDLES, version, namespaced: false },
      selection: { fieldSelector: `spec.signerName=${signer}` },
      clock,
      log,
      shape: bundleIn,
      changed({ upserts, deletes }) {
        for (const [key, text] of upserts) texts.set(key, text);
        for (const key of deletes) texts.delete(key);
        settle();
      },
      noted() {
        const { synced, fault } = reflector.state;
        if (synced || fault !== undefined) known.resolve();
      },
    });
    await reflector.run(signal);
  };
  void run();
  return {
    get current() {
      return current;
    },
    ready: () => waitAtMost(clock, PATIENCE_MS, known.promise),
    follow: (changed) => void followers.add(changed),
  };
}

interface Wait {
  readonly signal: AbortSignal;
  /** It is known that the cluster does not have it now. */
  readonly absent: () => void;
}

/** The version of them that the cluster has, waited for where it has none; undefined when the signal aborted. */
export async function servedVersion(
  { client, clock }: Pick<TrustBundleOptions, "client" | "clock">,
  { signal, absent }: Wait,
): Promise<string | undefined> {
  while (!signal.aborted) {
    const kinds = await installedKinds(client, [BUNDLES], signal).catch(() => undefined);
    const version = kinds?.get(wantedKey(BUNDLES));
    if (version !== undefined) return version;
    if (kinds !== undefined) absent();
    await clock.sleep(kinds === undefined ? ASK_AGAIN_MS : LOOK_AGAIN_MS, signal).catch(() => undefined);
  }
  return undefined;
}

/** The certificates in a ClusterTrustBundle; undefined where there are none. */
export function bundleIn({ spec }: KubeObject): string | undefined {
  const text = (spec as { readonly trustBundle?: unknown } | undefined)?.trustBundle;
  return typeof text === "string" && text !== "" ? text : undefined;
}
