import type { Clock } from "../base/clock.ts";
import { EdgeError } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Secret } from "../base/secret.ts";
import type { CaTexts } from "../ca/ca-material.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { Reflector } from "../kube/reflector.ts";
import type { FoundCa } from "./kept-ca.ts";
import { CA_SECRETS, type CaSecretName, caTextsOf, SECRETS } from "./root-secret.ts";

/** What following them takes. */
export interface FollowedCaOptions {
  readonly client: Pick<KubeClient, "listEach" | "watch">;
  /** Of the control plane: the Secrets are there. */
  readonly namespace: string;
  readonly clock: Clock;
  readonly log: Log;
}

/** The two Secrets that may hold the CA of the cluster, as they are now. */
export class FollowedCaSecrets {
  readonly #options: FollowedCaOptions;
  readonly #texts = new Map<CaSecretName, Secret<CaTexts>>();
  readonly #reflectors: readonly Reflector<Secret<CaTexts>>[];
  #noted: () => void = () => {};
  /** Called whenever one of them has changed. */
  changed: () => void = () => {};

  constructor(options: FollowedCaOptions) {
    this.#options = options;
    this.#reflectors = CA_SECRETS.map((name) => this.#follow(name));
  }

  /** The one that counts: `cacerts` before the one that is made. */
  get found(): FoundCa | undefined {
    for (const name of CA_SECRETS) {
      const texts = this.#texts.get(name);
      if (texts !== undefined) return { name, texts };
    }
    return undefined;
  }

  /** Follows both until the signal aborts. */
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
