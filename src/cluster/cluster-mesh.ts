import { readFile } from "node:fs/promises";
import { afterOrNever, type Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { writeWholeFile } from "../base/whole-file.ts";
import type { MeshText } from "../config/mesh/mesh-files.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { Reflector, type ReflectorTimes } from "../kube/reflector.ts";
import type { KubeObject, ResourceType } from "../kube/resource-type.ts";

export interface ClusterMeshOptions {
  readonly client: Pick<KubeClient, "listEach" | "watch" | "server">;
  /** Namespace of the control plane. */
  readonly namespace: string;
  readonly revision: string;
  /** Name of a ConfigMap that several control planes share and that this one's own stands over (SHARED_MESH_CONFIG); empty where there is none. */
  readonly shared: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Where it is kept for a start without the cluster. */
  readonly file: string;
  readonly times?: Partial<ReflectorTimes>;
}

/** What is kept of before is used this soon where the cluster does not answer. */
const SAVED_AFTER_MS = 3_000;
const CONFIG_MAPS: ResourceType = { group: "", version: "v1", plural: "configmaps", namespaced: true };

/**
 * MeshConfig and MeshNetworks of a cluster: the ConfigMap `istio`, or `istio-<revision>`, in the namespace of the control plane, over a shared one where
 * that is named, followed as they change.
 */
export class ClusterMesh {
  readonly #options: ClusterMeshOptions;
  /** One for each ConfigMap, that which stands over the others last. */
  readonly #reflectors: readonly Reflector<MeshText>[];
  readonly #texts: (MeshText | undefined)[] = [];
  #current: MeshText | undefined;
  #changed: () => void = () => {};
  #noted: () => void = () => {};

  constructor(options: ClusterMeshOptions) {
    this.#options = options;
    const { revision, shared } = options;
    const own = revision === "" || revision === "default" ? "istio" : `istio-${revision}`;
    const names = shared === "" || shared === own ? [own] : [shared, own];
    this.#reflectors = names.map((name, index) => this.#reflector(name, index));
  }

  #reflector(name: string, index: number): Reflector<MeshText> {
    const { client, clock, log, namespace, times } = this.#options;
    return new Reflector<MeshText>({
      client,
      type: CONFIG_MAPS,
      selection: { namespace, fieldSelector: `metadata.name=${name}` },
      clock,
      log,
      shape: (object) => textOf(object, `ConfigMap ${namespace}/${name}`),
      changed: ({ upserts }) => {
        this.#texts[index] = [...upserts.values()][0];
        this.#settle();
      },
      noted: () => {
        if (isWithheld(this.#reflectors[index])) this.#settle();
        this.#noted();
      },
      ...(times !== undefined && { times }),
    });
  }

  get current(): MeshText | undefined {
    return this.#current;
  }

  /** Calls back whenever it changes. */
  follow(changed: () => void): void {
    this.#changed = changed;
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#reflectors.map((reflector) => reflector.run(signal)));
  }

  /** Resolves when it is known what the cluster says, or after `patienceMs`: then what it said before is taken. Where that is known, sooner. */
  async ready(patienceMs: number | undefined): Promise<void> {
    const { clock, file, client, log } = this.#options;
    const saved = await savedText(file, client.server);
    const wait = saved === undefined ? patienceMs : Math.min(patienceMs ?? SAVED_AFTER_MS, SAVED_AFTER_MS);
    let patient = true;
    const cancel = afterOrNever(clock, wait, () => {
      patient = false;
      this.#noted();
    });
    let told = false;
    while (patient && !this.#isKnown()) {
      const fault = this.#reflectors.map(({ state }) => state.fault).find((one) => one !== undefined);
      if (fault !== undefined && !told) log.warn({ reason: fault.message }, "the cluster cannot be read; waiting for it");
      told ||= fault !== undefined;
      await new Promise<void>((resolve) => {
        this.#noted = resolve;
      });
    }
    cancel();
    this.#noted = () => {};
    if (this.#isKnown()) return;
    this.#current ??= saved;
    if (this.#current !== undefined) log.warn({ file }, "the cluster cannot be reached; MeshConfig is what it said before");
  }

  /** Takes what the cluster says as soon as all of it is known: one ConfigMap without the other would be half a configuration. */
  #settle(): void {
    if (this.#isKnown()) this.#take(stacked(this.#texts));
  }

  #isKnown(): boolean {
    return this.#reflectors.every((reflector) => reflector.state.synced || isWithheld(reflector));
  }

  #take(text: MeshText | undefined): void {
    if (JSON.stringify(text) === JSON.stringify(this.#current)) return;
    this.#current = text;
    this.#changed();
    const { file, client, log } = this.#options;
    writeWholeFile(file, `${JSON.stringify({ server: client.server, text })}\n`).catch((error) =>
      log.warn({ file, reason: messageOf(error) }, "MeshConfig of the cluster cannot be kept on disk for a start without it"),
    );
  }
}

/** Not ours to read: then it is as if there were none. */
function isWithheld(reflector: Reflector<MeshText> | undefined): boolean {
  const state = reflector?.state;
  return state?.synced === false && state.fault?.isForbidden === true;
}

function textOf({ data }: KubeObject, title: string): MeshText {
  const texts = (typeof data === "object" && data !== null ? data : {}) as Readonly<Record<string, unknown>>;
  return {
    title,
    ...(typeof texts.mesh === "string" && { mesh: texts.mesh }),
    ...(typeof texts.meshNetworks === "string" && { networks: texts.meshNetworks }),
  };
}

/** Each text over those before it. */
const stacked = (texts: readonly (MeshText | undefined)[]): MeshText | undefined =>
  texts.reduce((under, text) => (text === undefined || under === undefined ? (text ?? under) : { ...text, under }), undefined);

async function savedText(file: string, server: string): Promise<MeshText | undefined> {
  try {
    const saved = JSON.parse(await readFile(file, "utf8")) as { readonly server?: string; readonly text?: MeshText };
    return saved.server === server ? saved.text : undefined;
  } catch {
    return undefined;
  }
}
