import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { messageOf } from "../../../src/base/errors.ts";
import type { ContainerProcess, ExecResult, Exit } from "./container-process.ts";
import type { ContainerSpec, Handler, ProbeSpec } from "./pod.ts";
import { runHandler } from "./probe.ts";

/** As in a Pod's status. */
export type ContainerState =
  | { readonly waiting: { readonly reason: string; readonly message?: string } }
  | { readonly running: { readonly startedAt: string } }
  | { readonly terminated: TerminatedState };

export interface TerminatedState {
  readonly exitCode: number;
  readonly reason: string;
  readonly startedAt: string;
  readonly finishedAt: string;
}

export interface ContainerOptions {
  readonly spec: ContainerSpec;
  readonly address: () => string;
  readonly restartPolicy: "Always" | "OnFailure" | "Never";
  /** Starts it once more. Throws where something that it needs is not there. */
  launch(): Promise<ContainerProcess>;
  exec(process: ContainerProcess, command: readonly string[], timeoutMs: number): Promise<ExecResult>;
  /** Its state has changed. */
  changed(): void;
  readonly firstBackOffMs: number;
}

const LONGEST_BACK_OFF_MS = 30_000;
/** For a container that failed a probe. */
const PROBE_GRACE_MS = 5_000;
const HOOK_TIMEOUT_MS = 60_000;

/** A container through all its runs: starts it again where its policy says so, probes it, ends it in order. */
export class Container {
  readonly spec: ContainerSpec;
  state: ContainerState = { waiting: { reason: "PodInitializing" } };
  lastState: ContainerState | undefined;
  restartCount = 0;
  /** Its startup probe, if it has one, has succeeded. */
  started = false;
  ready = false;
  /** When its postStart hook is through, or it has ended for good. */
  readonly up: Promise<void>;
  /** When its startup probe has succeeded too, or it has ended for good. */
  readonly startedOnce: Promise<void>;
  /** With its last exit, when it will not be started again. */
  readonly finished: Promise<Exit>;

  readonly #options: ContainerOptions;
  readonly #clock: Clock = systemClock;
  #process: ContainerProcess | undefined;
  readonly #stopping = new AbortController();
  #runs = false;
  #isUp: () => void = () => {};
  #isStarted: () => void = () => {};
  #isFinished: (exit: Exit) => void = () => {};

  constructor(options: ContainerOptions) {
    this.#options = options;
    this.spec = options.spec;
    this.up = new Promise((resolve) => {
      this.#isUp = resolve;
    });
    this.startedOnce = new Promise((resolve) => {
      this.#isStarted = resolve;
    });
    this.finished = new Promise((resolve) => {
      this.#isFinished = resolve;
    });
  }

  /** Runs it until it has ended for good. */
  async run(): Promise<Exit> {
    this.#runs = true;
    let backOff = this.#options.firstBackOffMs;
    for (;;) {
      const startedAt = this.#clock.now();
      const exit = this.#stopping.signal.aborted ? undefined : await this.#runOnce();
      if (this.#stopping.signal.aborted || (exit !== undefined && !this.#startsAgain(exit))) {
        this.#isUp();
        this.#isStarted();
        this.#isFinished(exit ?? { code: 137 });
        return exit ?? { code: 137 };
      }
      if (this.#clock.now() - startedAt > 10_000) backOff = this.#options.firstBackOffMs;
      if (exit !== undefined)
        this.#set({ waiting: { reason: "CrashLoopBackOff", message: `back-off ${backOff} ms restarting failed container` } });
      await this.#clock.sleep(backOff, this.#stopping.signal).catch(() => {});
      backOff = Math.min(backOff * 2, LONGEST_BACK_OFF_MS);
      if (exit !== undefined) this.restartCount += 1;
    }
  }

  /** Runs its preStop hook, asks it to end, and makes it end when its time is over. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort();
    if (!this.#runs) return;
    await this.#end(graceMs);
    await this.finished;
  }

  /** Runs something in it. */
  exec(command: readonly string[], timeoutMs: number): Promise<ExecResult> {
    if (this.#process === undefined) return Promise.resolve({ code: 126, stdout: "", stderr: `container ${this.spec.name} does not run` });
    return this.#options.exec(this.#process, command, timeoutMs);
  }

  /** Undefined where it could not be started. */
  async #runOnce(): Promise<Exit | undefined> {
    const startedAt = timestamp(this.#clock);
    const over = new AbortController();
    try {
      const process = await this.#options.launch();
      this.#process = process;
      if (this.#stopping.signal.aborted) process.kill();
      this.started = this.spec.startupProbe === undefined;
      this.#set({ running: { startedAt } });
      void this.#afterStart(over.signal);
      const exit = await process.exited;
      this.lastState = {
        terminated: { exitCode: exit.code, reason: exit.code === 0 ? "Completed" : "Error", startedAt, finishedAt: timestamp(this.#clock) },
      };
      this.#process = undefined;
      this.started = false;
      this.#set(this.lastState, false);
      return exit;
    } catch (error) {
      this.#set({ waiting: { reason: "CreateContainerConfigError", message: messageOf(error) } });
      return undefined;
    } finally {
      over.abort();
    }
  }

  #startsAgain({ code }: Exit): boolean {
    return this.#options.restartPolicy === "Always" || (this.#options.restartPolicy === "OnFailure" && code !== 0);
  }

  async #afterStart(over: AbortSignal): Promise<void> {
    const { lifecycle, startupProbe, livenessProbe, readinessProbe } = this.spec;
    if (lifecycle?.postStart !== undefined && !(await this.#handle(lifecycle.postStart, HOOK_TIMEOUT_MS))) return this.#end(0);
    this.#isUp();
    if (startupProbe !== undefined && !(await this.#probeUntil(startupProbe, over, "passed"))) {
      return over.aborted ? undefined : this.#end(PROBE_GRACE_MS);
    }
    this.started = true;
    this.#isStarted();
    if (readinessProbe === undefined) this.ready = !over.aborted;
    else void this.#followReadiness(readinessProbe, over);
    this.#options.changed();
    if (livenessProbe === undefined) return;
    await this.#probeUntil(livenessProbe, over, "failed");
    if (!over.aborted) await this.#end(PROBE_GRACE_MS);
  }

  async #followReadiness(probe: ProbeSpec, over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await this.#probeUntil(probe, over, this.ready ? "failed" : "passed");
      if (over.aborted) return;
      this.ready = !this.ready;
      this.#options.changed();
    }
  }

  /** Probes until it has passed, or failed, as often in a row as its threshold says. For a startup probe, failing too often ends it too. */
  async #probeUntil(probe: ProbeSpec, over: AbortSignal, awaited: "passed" | "failed"): Promise<boolean> {
    const { initialDelaySeconds = 0, periodSeconds = 10, timeoutSeconds = 1, successThreshold = 1, failureThreshold = 3 } = probe;
    await this.#pause(initialDelaySeconds, over);
    for (let [passes, failures] = [0, 0]; !over.aborted; ) {
      const passed = await this.#handle(probe, timeoutSeconds * 1_000);
      [passes, failures] = passed ? [passes + 1, 0] : [0, failures + 1];
      if (awaited === "passed" && passes >= successThreshold) return true;
      if ((awaited === "failed" || probe === this.spec.startupProbe) && failures >= failureThreshold) return false;
      await this.#pause(periodSeconds, over);
    }
    return false;
  }

  #pause(seconds: number, over: AbortSignal): Promise<void> {
    return this.#clock.sleep(seconds * 1_000, over).catch(() => {});
  }

  #handle(handler: Handler, timeoutMs: number): Promise<boolean> {
    const exec = async (command: readonly string[], limit: number): Promise<boolean> => (await this.exec(command, limit)).code === 0;
    return runHandler(handler, { container: this.spec, address: this.#options.address(), exec }, timeoutMs);
  }

  async #end(graceMs: number): Promise<void> {
    const process = this.#process;
    if (process === undefined) return;
    const deadline = this.#clock.monotonic() + graceMs;
    const exited = process.exited.then(() => {});
    const { preStop } = this.spec.lifecycle ?? {};
    if (preStop !== undefined && graceMs > 0) await Promise.race([exited, this.#handle(preStop, graceMs), this.#after(graceMs)]);
    process.signal("SIGTERM");
    await Promise.race([exited, this.#after(Math.max(0, deadline - this.#clock.monotonic()))]);
    process.kill();
    await exited;
  }

  #after(ms: number): Promise<void> {
    return new Promise((resolve) => this.#clock.after(ms, resolve));
  }

  #set(state: ContainerState, ready = false): void {
    this.state = state;
    this.ready = ready;
    this.#options.changed();
  }
}

/** The moment as the API writes it. */
export const timestamp = (clock: Clock): string => `${new Date(clock.now()).toISOString().slice(0, 19)}Z`;
