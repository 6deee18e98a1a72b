import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { messageOf } from "../../../src/base/errors.ts";
import type { KubeClient } from "../kube-client.ts";
import { Container, timestamp } from "./container.ts";
import { type ContainerProcess, type ExecResult, startContainerProcess } from "./container-process.ts";
import type { ProgramPlan } from "./container-script.ts";
import type { PodFacts } from "./environment.ts";
import { findImage, type Images } from "./image.ts";
import { planContainer } from "./image-program.ts";
import { latestOnly } from "./latest-only.ts";
import type { NodeNetwork, PodNetwork } from "./node-network.ts";
import { type ContainerSpec, isSidecar, type Pod } from "./pod.ts";
import { deletePod, podData, podToken, podTrustBundle, StatusWriter } from "./pod-api.ts";
import { podStatus, type Transition } from "./pod-status.ts";
import { prepareVolumes, type Volumes } from "./volumes.ts";

/** What all pods of a node share. */
export interface PodSurroundings {
  readonly client: KubeClient;
  readonly network: NodeNetwork;
  readonly images: Images;
  /** For the files of its pods. */
  readonly dir: string;
  readonly capacity: Readonly<Record<string, string>>;
  readonly apiAddress: string;
  readonly firstBackOffMs: number;
}

/** The least time a sidecar has to end in, after the others. */
const LEAST_GRACE_MS = 2_000;

/** One pod on this machine, from its network to its end. */
export class PodWorker {
  #pod: Pod;
  readonly #around: PodSurroundings;
  readonly #clock: Clock = systemClock;
  readonly #dir: string;
  readonly #ending = new AbortController();
  readonly #init: readonly Container[];
  readonly #main: readonly Container[];
  readonly #plans = new Map<string, ProgramPlan>();
  readonly #status: StatusWriter;
  readonly #startTime: string;
  readonly #transitions = new Map<string, Transition>();
  #network: PodNetwork | undefined;
  #volumes: Volumes | undefined;
  #obstacle: string | undefined = "";
  #running: Promise<void> | undefined;
  #ended: Promise<void> | undefined;

  constructor(pod: Pod, around: PodSurroundings) {
    this.#pod = pod;
    this.#around = around;
    this.#dir = join(around.dir, pod.metadata.uid ?? pod.metadata.name);
    this.#startTime = timestamp(this.#clock);
    this.#status = new StatusWriter(around.client, pod, () => this.#view());
    const { initContainers = [], containers, restartPolicy = "Always" } = pod.spec;
    this.#init = initContainers.map((spec) =>
      this.#container(spec, isSidecar(spec) ? "Always" : restartPolicy === "Never" ? "Never" : "OnFailure"),
    );
    this.#main = containers.map((spec) => this.#container(spec, restartPolicy));
  }

  get namespace(): string | undefined {
    return this.#pod.metadata.namespace;
  }

  get uid(): string | undefined {
    return this.#pod.metadata.uid;
  }

  /** Brings it up and keeps it going; returns when it has ended or is to end. */
  run(): Promise<void> {
    this.#running = this.#run();
    return this.#running;
  }

  /** The API server has a new version of it. */
  update(pod: Pod): void {
    const { deletionTimestamp, deletionGracePeriodSeconds = 30 } = pod.metadata;
    const gates = pod.spec.readinessGates !== undefined && pod.status?.conditions !== this.#pod.status?.conditions;
    const shown = ({ metadata: { labels, annotations } }: Pod): string => JSON.stringify([labels, annotations]);
    const relabelled = shown(pod) !== shown(this.#pod);
    this.#pod = pod;
    if (gates) this.#status.changed();
    if (relabelled) this.refreshVolumes();
    if (deletionTimestamp !== undefined) this.#ended ??= this.#terminate(deletionGracePeriodSeconds * 1_000);
  }

  /** Ends it without ceremony. */
  async destroy(): Promise<void> {
    this.#ending.abort();
    this.#status.stop();
    await Promise.all([...this.#main, ...this.#init].map((container) => container.stop(0)));
    await this.#remove();
  }

  /** Runs something in one of its containers, the first one unless told. */
  exec(container: string | undefined, command: readonly string[], timeoutMs: number): Promise<ExecResult> {
    return this.#find(container).exec(command, timeoutMs);
  }

  /** What a container has written in all its runs. */
  logs(container: string | undefined): string {
    const file = this.#logFile(this.#find(container).spec);
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  }

  /** Something that its volumes are made of may have changed. */
  readonly refreshVolumes = latestOnly(async () => {
    if (!this.#ending.signal.aborted) await this.#volumes?.refresh();
  });

  /** Gives it new tokens now. */
  async rotateTokens(): Promise<void> {
    this.#volumes?.expireTokens();
    await this.#volumes?.refresh();
  }

  async #run(): Promise<void> {
    mkdirSync(this.#dir, { recursive: true });
    this.#status.changed();
    this.#network = await this.#makeNetwork();
    if (!(await this.#makeVolumes()) || !(await this.#initialize())) return;
    for (const container of this.#main) {
      if (this.#ending.signal.aborted) return;
      void container.run();
      await container.up;
    }
    await Promise.all(this.#main.map(({ finished }) => finished));
    if (!this.#ending.signal.aborted) await this.#stopSidecars(LEAST_GRACE_MS);
  }

  #find(name: string | undefined): Container {
    const found = name === undefined ? this.#main[0] : [...this.#main, ...this.#init].find(({ spec }) => spec.name === name);
    if (found === undefined) throw new Error(`pod ${this.#pod.metadata.name} has no container ${name}`);
    return found;
  }

  /** Init containers one after the other; a sidecar's turn ends when it has started. False where the pod goes no further. */
  async #initialize(): Promise<boolean> {
    for (const container of this.#init) {
      if (this.#ending.signal.aborted) return false;
      const running = container.run();
      if (isSidecar(container.spec)) await container.startedOnce;
      else if ((await running).code !== 0) return false;
    }
    return !this.#ending.signal.aborted;
  }

  /** That of the node where the pod says so. */
  async #makeNetwork(): Promise<PodNetwork> {
    const { network } = this.#around;
    if (this.#pod.spec.hostNetwork === true) return { address: network.nodeAddress, enter: network.enter, remove: async () => {} };
    return network.addPod((this.uid ?? "").replaceAll("-", "").slice(0, 12));
  }

  async #makeVolumes(): Promise<boolean> {
    const { client } = this.#around;
    const requestToken = podToken(client, () => this.#pod);
    for (;;) {
      try {
        this.#volumes = await prepareVolumes({
          facts: () => this.#facts(),
          dir: join(this.#dir, "volumes"),
          requestToken,
          clock: this.#clock,
        });
        this.#obstacle = undefined;
        return true;
      } catch (error) {
        this.#obstacle = messageOf(error);
        this.#status.changed();
      }
      await this.#clock.sleep(500, this.#ending.signal).catch(() => {});
      if (this.#ending.signal.aborted) return false;
    }
  }

  async #terminate(graceMs: number): Promise<void> {
    const deadline = this.#clock.monotonic() + graceMs;
    this.#ending.abort();
    await Promise.all([...this.#main, ...this.#init.filter(({ spec }) => !isSidecar(spec))].map((container) => container.stop(graceMs)));
    await this.#stopSidecars(Math.max(graceMs === 0 ? 0 : LEAST_GRACE_MS, deadline - this.#clock.monotonic()));
    await this.#status.flush();
    await this.#remove();
    await deletePod(this.#around.client, this.#pod);
  }

  /** Takes away what there is of it on this machine, once nothing more is made. */
  async #remove(): Promise<void> {
    await this.#running?.catch(() => {});
    await this.#network?.remove();
    await rm(this.#dir, { recursive: true, force: true });
  }

  /** In the opposite of the order in which they were started. */
  async #stopSidecars(graceMs: number): Promise<void> {
    for (const container of this.#init.filter(({ spec }) => isSidecar(spec)).reverse()) await container.stop(graceMs);
  }

  #container(spec: ContainerSpec, restartPolicy: "Always" | "OnFailure" | "Never"): Container {
    return new Container({
      spec,
      restartPolicy,
      address: () => this.#network?.address ?? "",
      firstBackOffMs: this.#around.firstBackOffMs,
      launch: () => this.#launch(spec),
      exec: (process, command, timeoutMs) => this.#execIn(process, spec, { command, timeoutMs }),
      changed: () => this.#status.changed(),
    });
  }

  async #launch(container: ContainerSpec): Promise<ContainerProcess> {
    const { images, network, apiAddress } = this.#around;
    const image = findImage(images, container.image);
    if (image === undefined) throw new Error(`no program stands for image ${container.image}; there are ${Object.keys(images).join(", ")}`);
    if (this.#volumes === undefined || this.#network === undefined) throw new Error("the pod is not set up yet");
    const { dnsAddress } = network;
    const plan = await planContainer({ facts: this.#facts(), container, image, volumes: this.#volumes, dnsAddress, apiAddress });
    this.#plans.set(container.name, plan.program);
    const { enter } = this.#network;
    return startContainerProcess({ enter, plan, dir: join(this.#dir, "containers", container.name), logFile: this.#logFile(container) });
  }

  async #execIn(
    process: ContainerProcess,
    { name }: ContainerSpec,
    { command, timeoutMs }: { readonly command: readonly string[]; readonly timeoutMs: number },
  ): Promise<ExecResult> {
    const plan = this.#plans.get(name);
    if (plan === undefined) throw new Error(`container ${name} was not started`);
    return process.exec({ ...plan, words: command }, timeoutMs);
  }

  #logFile({ name }: ContainerSpec): string {
    return join(this.#dir, `${name}.log`);
  }

  #facts(): PodFacts {
    const { client, capacity, network } = this.#around;
    const { namespace = "default" } = this.#pod.metadata;
    return {
      pod: this.#pod,
      podAddress: this.#network?.address ?? "",
      nodeAddress: network.nodeAddress,
      capacity,
      data: (kind, name) => podData(client, kind, `${namespace}/${name}`),
      trustBundle: (source) => podTrustBundle(client, source),
    };
  }

  #view(): object {
    return podStatus({
      pod: this.#pod,
      address: this.#network?.address ?? "",
      nodeAddress: this.#around.network.nodeAddress,
      startTime: this.#startTime,
      init: this.#init,
      main: this.#main,
      transitions: this.#transitions,
      now: timestamp(this.#clock),
      obstacle: this.#obstacle,
    });
  }
}
