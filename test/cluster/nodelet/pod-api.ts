import { systemClock } from "../../../src/base/clock.ts";
import type { KubeClient } from "../kube-client.ts";
import { KubeApiError, type KubeObject } from "../kube-object.ts";
import { requestToken } from "../service-account-token.ts";
import type { Pod, TrustBundleSource } from "./pod.ts";
import type { TokenSource } from "./volume-files.ts";

const RETRY_MS = 200;

/** Writes a pod's status to the API server: the latest, as soon as the one before is written, until it succeeds. */
export class StatusWriter {
  readonly #client: KubeClient;
  readonly #pod: Pod;
  readonly #latest: () => object;
  readonly #stopped = new AbortController();
  #wanted = false;
  #writing: Promise<void> | undefined;

  constructor(client: KubeClient, pod: Pod, latest: () => object) {
    this.#client = client;
    this.#pod = pod;
    this.#latest = latest;
  }

  changed(): void {
    this.#wanted = true;
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Resolves when all is written. */
  async flush(): Promise<void> {
    this.changed();
    await this.#writing;
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #write(): Promise<void> {
    const { name, namespace = "default", uid } = this.#pod.metadata;
    // Several changes in a row are one.
    await Promise.resolve();
    while (this.#wanted && !this.#stopped.signal.aborted) {
      this.#wanted = false;
      try {
        const body = { metadata: { uid }, status: this.#latest() };
        await this.#client.patch("Pod", `${namespace}/${name}`, { type: "strategic", subresource: "status", body });
      } catch (error) {
        // Another pod has its name now, or none.
        if (error instanceof KubeApiError && (error.status === 404 || error.status === 409)) return;
        if (error instanceof KubeApiError && error.status === 422) process.stderr.write(`nodelet: ${error.message}\n`);
        else this.#wanted = true;
        await systemClock.sleep(RETRY_MS, this.#stopped.signal).catch(() => {});
      }
    }
  }
}

/** Tells the API server that a pod has ended; it may be told again. */
export async function deletePod({ api }: KubeClient, { metadata }: Pod): Promise<void> {
  const { name, namespace = "default", uid } = metadata;
  const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
  for (;;) {
    try {
      await api.call({ method: "DELETE", path, body: { gracePeriodSeconds: 0, preconditions: { uid } } });
      return;
    } catch (error) {
      if (error instanceof KubeApiError && (error.status === 404 || error.status === 409)) return;
      await systemClock.sleep(RETRY_MS);
    }
  }
}

/** The data of a ConfigMap or Secret; undefined where there is none. */
export async function podData(
  client: KubeClient,
  kind: "ConfigMap" | "Secret",
  name: string,
): Promise<Readonly<Record<string, Buffer>> | undefined> {
  type Bundle = KubeObject & { readonly data?: Record<string, string>; readonly binaryData?: Record<string, string> };
  const object = await client.get<Bundle>(kind, name);
  if (object === undefined) return undefined;
  const encoding = kind === "Secret" ? "base64" : "utf8";
  return Object.fromEntries([
    ...Object.entries(object.data ?? {}).map(([key, text]) => [key, Buffer.from(text, encoding)]),
    ...Object.entries(object.binaryData ?? {}).map(([key, text]) => [key, Buffer.from(text, "base64")]),
  ]);
}

/** What a pod gets to see of ClusterTrustBundles: one by name, or all of a signer's that a selector chooses. */
export async function podTrustBundle(
  client: KubeClient,
  { name, signerName, labelSelector }: TrustBundleSource,
): Promise<string | undefined> {
  type Bundle = KubeObject & { readonly spec: { readonly signerName?: string; readonly trustBundle: string } };
  if (name !== undefined) return (await client.get<Bundle>("ClusterTrustBundle", name))?.spec.trustBundle;
  const labels = Object.entries(labelSelector?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  const bundles = await client.list<Bundle>("ClusterTrustBundle", { labelSelector: labels.join() });
  const own = bundles.filter(({ spec }) => spec.signerName === signerName).map(({ spec }) => spec.trustBundle);
  return own.length === 0 ? undefined : own.join("\n");
}

/** Tokens of a pod's service account, bound to the pod. */
export function podToken(client: KubeClient, pod: () => Pod): TokenSource {
  return ({ audience, expirationSeconds }) => {
    const { metadata, spec } = pod();
    return requestToken(client, `${metadata.namespace}/${spec.serviceAccountName ?? "default"}`, {
      expirationSeconds,
      ...(audience !== undefined && { audiences: [audience] }),
      boundPod: { name: metadata.name, uid: metadata.uid ?? "" },
    });
  };
}
