import type { Clock } from "../base/clock.ts";
import { EdgeError, messageOf } from "../base/errors.ts";
import { contentHash } from "../base/hash.ts";
import type { Log } from "../base/log.ts";
import { CA_FILES, type CaMaterial, readCaMaterial } from "../ca/ca-material.ts";
import { fileRootStore } from "../ca/file-root-store.ts";
import { makeRoot } from "../ca/make-root.ts";
import type { RootNews, RootStore } from "../ca/root-store.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { KubeError } from "../kube/kube-error.ts";
import { readPemFiles } from "../pki/pem-files.ts";
import { FollowedCaSecrets } from "./followed-ca-secrets.ts";
import { type FoundCa, type KeptCa, keptCa } from "./kept-ca.ts";
import { CA_SECRETS, caTextsOf, MADE_SECRET, rootSecret, SECRETS } from "./root-secret.ts";

/** What a store of the CA in a Secret takes. */
export interface SecretRootOptions {
  readonly client: Pick<KubeClient, "server" | "get" | "listEach" | "watch" | "create">;
  /** Of the control plane: the Secrets are there. */
  readonly namespace: string;
  /** Where a CA in files would be. */
  readonly directory: string;
  /** Of a root that is made here. */
  readonly trustDomain: string;
  readonly rootTtlMs: number;
  /** Where it is kept for a start while the API server is away; undefined: nowhere. */
  readonly kept: string | undefined;
  /** How long a start waits for the cluster; undefined: for as long as it takes. */
  readonly patienceMs?: number | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** What is kept is used this soon where the cluster does not answer. */
const KEPT_AFTER_MS = 3_000;

/**
 * The CA in a Secret of the control plane's namespace, followed until the signal aborts: `cacerts`, else `istio-ca-secret`, else one that is made. Of several
 * replicas that make one at a time the API server takes the first, and all others take that. A CA in files counts where the cluster has none.
 */
export const secretRootStore = (options: SecretRootOptions, signal: AbortSignal): RootStore => new SecretRootStore(options, signal);

class SecretRootStore implements RootStore {
  readonly patienceMs: number | undefined;
  readonly #options: SecretRootOptions;
  readonly #signal: AbortSignal;
  readonly #kept: KeptCa;
  readonly #files: RootStore;
  #secrets: FollowedCaSecrets;
  #place: string;
  #usesFiles = false;
  /** Digest of what was told last, so that nothing is told twice. */
  #told = "";

  constructor(options: SecretRootOptions, signal: AbortSignal) {
    this.patienceMs = options.patienceMs;
    this.#options = options;
    this.#signal = signal;
    this.#kept = keptCa({ file: options.kept, server: options.client.server, log: options.log });
    this.#files = fileRootStore(options);
    this.#secrets = new FollowedCaSecrets(options);
    this.#place = this.#placeOf(MADE_SECRET);
  }

  get place(): string {
    return this.#place;
  }

  async load(): Promise<CaMaterial> {
    const failed = new AbortController();
    this.#secrets = new FollowedCaSecrets(this.#options);
    void this.#secrets.run(AbortSignal.any([this.#signal, failed.signal]));
    try {
      return await this.#choose();
    } catch (error) {
      failed.abort();
      throw error;
    }
  }

  follow(news: (news: RootNews) => void): () => void {
    if (this.#usesFiles) return this.#files.follow(news);
    const secrets = this.#secrets;
    secrets.changed = () => this.#look(news);
    // What was made a moment ago may not have been heard of yet.
    if (secrets.found !== undefined) this.#look(news);
    return () => {
      secrets.changed = () => {};
    };
  }

  async #choose(): Promise<CaMaterial> {
    const { directory, log } = this.#options;
    const before = await this.#kept.read();
    const isKnown = await this.#secrets.known(this.#signal, before === undefined ? undefined : KEPT_AFTER_MS);
    if (!isKnown) log.warn({ file: this.#options.kept }, "the cluster cannot be reached; the CA is the one it had before");
    if (isKnown && this.#secrets.found === undefined && (await readPemFiles(directory, CA_FILES)).texts.size > 0) {
      log.info({ directory }, "the cluster has no CA; the one in files is used");
      [this.#place, this.#usesFiles] = [directory, true];
      return this.#files.load();
    }
    const found = (isKnown ? this.#secrets.found : before) ?? (await makeOnce(this.#options));
    const material = this.#judge(found);
    if (typeof material === "string") throw unusable(material);
    this.#told = hashOf(found);
    this.#take(found);
    log.info({ secret: this.#nameOf(found.name), ends: new Date(material.endsAt).toISOString() }, "the CA of the cluster is used");
    return material;
  }

  /** Tells what the Secrets hold now, where that has not been told. */
  #look(news: (news: RootNews) => void): void {
    const { found } = this.#secrets;
    if (!this.#secrets.isSynced || hashOf(found) === this.#told) return;
    this.#told = hashOf(found);
    news(found === undefined ? { fault: `${this.#placeOf(CA_SECRETS.join(" and "))} is gone` } : this.#newsOf(found));
  }

  #newsOf(found: FoundCa): RootNews {
    const material = this.#judge(found);
    if (typeof material === "string") return { fault: material };
    this.#take(found);
    return { material };
  }

  /** From now on it is in force, also at a start without the API server. */
  #take(found: FoundCa): void {
    this.#place = this.#placeOf(found.name);
    this.#kept.write(found);
  }

  #judge({ name, texts }: FoundCa): CaMaterial | string {
    const material = readCaMaterial(texts.reveal(), this.#options.clock.now());
    return typeof material === "string" ? `${this.#placeOf(name)}: ${material}` : material;
  }

  #nameOf(secret: string): string {
    return `${this.#options.namespace}/${secret}`;
  }

  #placeOf(secret: string): string {
    return `Secret ${this.#nameOf(secret)}`;
  }
}

const hashOf = (found: FoundCa | undefined): string =>
  found === undefined ? "" : contentHash(JSON.stringify([found.name, found.texts.reveal()]));

/** Makes a root and takes it, or the one that another replica made first. */
async function makeOnce({ client, namespace, trustDomain, rootTtlMs, clock, log }: SecretRootOptions): Promise<FoundCa> {
  const texts = await makeRoot({ trustDomain, now: clock.now(), ttlMs: rootTtlMs });
  try {
    const made = await client.create(SECRETS, rootSecret(namespace, texts), { fieldManager: "istiod" });
    log.info({ secret: `${namespace}/${MADE_SECRET}` }, "a new root certificate was made; keep its Secret safe");
    return { name: MADE_SECRET, texts: caTextsOf(made) };
  } catch (error) {
    if (error instanceof KubeError && error.isConflict)
      return { name: MADE_SECRET, texts: caTextsOf(await client.get(SECRETS, { namespace, name: MADE_SECRET })) };
    throw new EdgeError("ca_unusable", `no root can be made in Secret ${namespace}/${MADE_SECRET}: ${messageOf(error)}`, {
      cause: error,
      hint: "let istiod create Secrets in its namespace, as deploy/istiod.yaml does, or put a CA into the Secret `cacerts`; `services: {ca: false}` runs without a CA",
    });
  }
}

const unusable = (reason: string): EdgeError =>
  new EdgeError("ca_unusable", `the CA of the cluster cannot be used: ${reason}`, {
    hint: "correct the Secret; a new root is made only where there is none at all. `services: {ca: false}` runs without a CA",
  });
