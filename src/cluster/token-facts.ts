import { cachedKeys, type KeySource } from "../authn/key-source.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Pod } from "../config/kinds/pod/pod.ts";
import type { ConfigObject } from "../config/object.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { Reflector } from "../kube/reflector.ts";
import { placeKey, type ResourceType } from "../kube/resource-type.ts";
import type { TokenBinding } from "./cluster-tokens.ts";

export interface TokenFactsOptions {
  readonly client: Pick<KubeClient, "listEach" | "watch" | "request">;
  /** Empty: all. */
  readonly namespaces: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

const ACCOUNTS: ResourceType = { group: "", version: "v1", plural: "serviceaccounts", namespaced: true };
const ASK_MS = 5_000;
const ASK_AGAIN_MS = 10_000;
/** Keys are asked for every ten minutes; those of before an outage are believed for a day. */
const BELIEVED_MS = 86_400_000;
const REFRESH_MS = 600_000;

/** What tokens are judged by: how the cluster calls itself as their issuer, its keys, and which service accounts there are. */
export class TokenFacts {
  readonly #options: TokenFactsOptions;
  readonly #accounts = new Map<string, string>();
  /** Namespaces, or all of them, whose accounts have been read. */
  #listed = 0;
  #issuer: string | undefined;
  readonly keys: KeySource;
  #hasKeys = false;

  constructor(options: TokenFactsOptions) {
    this.#options = options;
    const { client, clock } = options;
    this.keys = cachedKeys({
      read: async () =>
        JSON.stringify(await client.request({ path: "/openid/v1/jwks", accept: "application/jwk-set+json", timeoutMs: ASK_MS })),
      clock,
      times: { staleMs: BELIEVED_MS },
    });
  }

  /** Whether tokens can be judged without the API server. */
  get complete(): boolean {
    return this.#hasKeys && this.#issuer !== undefined && this.#listed >= Math.max(1, this.#options.namespaces.length);
  }

  get issuer(): string | undefined {
    return this.#issuer;
  }

  /** Whether a token's pod and account are there, by our own watches. What we do not watch is for the API server to say. */
  isThere({ namespace, pod, account }: TokenBinding, objects: { get(key: string): ConfigObject | undefined }): boolean {
    if (this.#accounts.get(placeKey({ namespace, name: account.name })) !== account.uid) return false;
    const running = objects.get(`Pod/${namespace}/${pod.name}`)?.spec as Pod | undefined;
    return running?.uid === pod.uid && (running.spec.serviceAccountName ?? "default") === account.name;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { namespaces } = this.#options;
    const places = namespaces.length === 0 ? [undefined] : namespaces;
    await Promise.all([this.#followIssuer(signal), ...places.map((namespace) => this.#accountsIn(namespace).run(signal))]);
  }

  #accountsIn(namespace: string | undefined): Reflector<string> {
    const { client, clock, log } = this.#options;
    return new Reflector<string>({
      client,
      type: ACCOUNTS,
      selection: { namespace, metadataOnly: true },
      clock,
      log,
      shape: ({ metadata }) => metadata.uid,
      changed: ({ upserts, deletes, first }) => {
        if (first) this.#listed += 1;
        for (const [key, uid] of upserts) this.#accounts.set(key, uid);
        for (const key of deletes) this.#accounts.delete(key);
      },
    });
  }

  async #followIssuer(signal: AbortSignal): Promise<void> {
    const { client, clock } = this.#options;
    while (!signal.aborted) {
      await this.keys.keys(true).then(
        () => (this.#hasKeys = true),
        () => undefined,
      );
      const answer = await client.request({ path: "/.well-known/openid-configuration", signal, timeoutMs: ASK_MS }).catch(() => undefined);
      const { issuer } = (answer ?? {}) as { readonly issuer?: unknown };
      if (typeof issuer === "string" && issuer !== "") this.#issuer = issuer;
      await clock.sleep(this.#issuer !== undefined && this.#hasKeys ? REFRESH_MS : ASK_AGAIN_MS, signal).catch(() => undefined);
    }
  }
}
