import type { Clock } from "../base/clock.ts";
import { EdgeError, messageOf } from "../base/errors.ts";
import { contentHash } from "../base/hash.ts";
import type { Log } from "../base/log.ts";
import type { Secret } from "../base/secret.ts";
import { CA_FILES, type CaMaterial, type CaTexts, readCaMaterial } from "../ca/ca-material.ts";
import { fileRootStore } from "../ca/file-root-store.ts";
import { makeRoot } from "../ca/make-root.ts";
import type { RootNews, RootStore } from "../ca/root-store.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { KubeError } from "../kube/kube-error.ts";
import { Reflector } from "../kube/reflector.ts";
import { readPemFiles } from "../pki/pem-files.ts";
import { type FoundCa, keptCa } from "./kept-ca.ts";
import { CA_SECRETS, type CaSecretName, caTextsOf, MADE_SECRET, rootSecret, SECRETS } from "./root-secret.ts";

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
export function secretRootStore(options: SecretRootOptions, signal: AbortSignal): RootStore {
  const { namespace, directory, trustDomain, rootTtlMs, clock, log } = options;
  let secrets = new FollowedSecrets(options);
  const kept = keptCa({ file: options.kept, server: options.client.server, log });
  const files = fileRootStore({ directory, trustDomain, rootTtlMs, clock, log });
  let place = `Secret ${namespace}/${MADE_SECRET}`;
  let usesFiles = false;
  let told = "";
  const judge = ({ name, texts }: FoundCa): CaMaterial | string => {
    const material = readCaMaterial(texts.reveal(), clock.now());
    return typeof material === "string" ? `Secret ${namespace}/${name}: ${material}` : material;
  };
  const choose = async (): Promise<CaMaterial> => {
    const before = await kept.read();
    const isKnown = await secrets.known(signal, before === undefined ? undefined : KEPT_AFTER_MS);
    if (!isKnown) log.warn({ file: options.kept }, "the cluster cannot be reached; the CA is the one it had before");
    if (isKnown && secrets.found === undefined && (await readPemFiles(directory, CA_FILES)).texts.size > 0) {
      log.info({ directory }, "the cluster has no CA; the one in files is used");
      [place, usesFiles] = [directory, true];
      return files.load();
    }
    const found = (isKnown ? secrets.found : before) ?? (await makeOnce(options));
    const material = judge(found);
    if (typeof material === "string") throw unusable(material);
    place = `Secret ${namespace}/${found.name}`;
    told = hashOf(found);
    kept.write(found);
    log.info({ secret: `${namespace}/${found.name}`, ends: new Date(material.endsAt).toISOString() }, "the CA of the cluster is used");
    return material;
  };
  return {
    get place() {
      return place;
    },
    patienceMs: options.patienceMs,
    async load() {
      const failed = new AbortController();
      secrets = new FollowedSecrets(options);
      void secrets.run(AbortSignal.any([signal, failed.signal]));
      try {
        return await choose();
      } catch (error) {
        failed.abort();
        throw error;
      }
    },
    follow(news) {
      if (usesFiles) return files.follow(news);
      const look = (): void => {
        const { found } = secrets;
        if (!secrets.isSynced || hashOf(found) === told) return;
        told = hashOf(found);
        const latest = newsOf(found, judge, namespace);
        if (found !== undefined && "material" in latest) {
          place = `Secret ${namespace}/${found.name}`;
          kept.write(found);
        }
        news(latest);
      };
      secrets.changed = look;
      // What was made a moment ago may not have been heard of yet.
      if (secrets.found !== undefined) look();
      return () => {
        secrets.changed = () => {};
      };
    },
  };
}

const hashOf = (found: FoundCa | undefined): string =>
  found === undefined ? "" : contentHash(JSON.stringify([found.name, found.texts.reveal()]));

function newsOf(found: FoundCa | undefined, judge: (found: FoundCa) => CaMaterial | string, namespace: string): RootNews {
  if (found === undefined) return { fault: `Secret ${namespace}/${CA_SECRETS.join(" and ")} is gone` };
  const material = judge(found);
  return typeof material === "string" ? { fault: material } : { material };
}

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

/** Both Secrets, as they are now. */
class FollowedSecrets {
  readonly #options: SecretRootOptions;
  readonly #texts = new Map<CaSecretName, Secret<CaTexts>>();
  readonly #reflectors: readonly Reflector<Secret<CaTexts>>[];
  #noted: () => void = () => {};
  changed: () => void = () => {};

  constructor(options: SecretRootOptions) {
    this.#options = options;
    this.#reflectors = CA_SECRETS.map((name) => this.#follow(name));
  }

  get found(): FoundCa | undefined {
    for (const name of CA_SECRETS) {
      const texts = this.#texts.get(name);
      if (texts !== undefined) return { name, texts };
    }
    return undefined;
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.run(signal)));
  }

  /** Resolves when it is known which of the two are there, however long that takes: a root must not be made because an answer failed to come. False after `patienceMs`. */
  async known(signal: AbortSignal, patienceMs: number | undefined): Promise<boolean> {
    const { clock, log, namespace } = this.#options;
    let [told, patient] = [false, true];
    const giveUp = (): void => {
      patient = false;
      this.#noted();
    };
    const cancel = patienceMs === undefined ? () => {} : clock.after(patienceMs, giveUp);
    while (patient && !this.isSynced) {
      signal.throwIfAborted();
      const fault = this.#reflectors.map(({ state }) => state.fault).find((one) => one !== undefined);
      if (fault?.isForbidden === true)
        throw new EdgeError("ca_unusable", `Secrets with the CA may not be read: ${fault.message}`, {
          cause: fault,
          hint: `let istiod get, list and watch ${CA_SECRETS.join(" and ")} in ${namespace}, as deploy/istiod.yaml does; \`services: {ca: false}\` runs without a CA`,
        });
      if (fault !== undefined && !told) log.warn({ reason: fault.message }, "the Secret with the CA cannot be read; waiting for it");
      told ||= fault !== undefined;
      await new Promise<void>((resolve) => {
        this.#noted = resolve;
      });
    }
    cancel();
    this.#noted = () => {};
    return this.isSynced;
  }

  /** What is not there is known not to be there. */
  get isSynced(): boolean {
    return this.#reflectors.every(({ state }) => state.synced);
  }

  #follow(name: CaSecretName): Reflector<Secret<CaTexts>> {
    const { client, namespace, clock, log } = this.#options;
    return new Reflector({
      client,
      type: SECRETS,
      selection: { namespace, fieldSelector: `metadata.name=${name}` },
      clock,
      log,
      shape: caTextsOf,
      changed: ({ upserts, deletes }) => {
        for (const texts of upserts.values()) this.#texts.set(name, texts);
        if (deletes.length > 0) this.#texts.delete(name);
        this.changed();
      },
      noted: () => this.#noted(),
    });
  }
}
