import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import { KubeError } from "../../kube/kube-error.ts";

export interface ProbeOptions {
  readonly client: Pick<KubeClient, "request">;
  readonly clock: Clock;
  /** How often it is asked; five times as often while it does not answer. */
  readonly everyMs: number;
  readonly timeoutMs: number;
  /** It answers again. Connections of before may be dead without anybody having said so. */
  readonly recovered: () => void;
  readonly noted: () => void;
}

/** Whether the API server answers; `since` in ms since the epoch. */
export interface ProbeState {
  readonly fault: string | undefined;
  readonly since: number;
}

/** Asks the API server for its version from time to time: a watch cannot tell a server that hangs from one where nothing happens. */
export class ServerProbe {
  readonly #options: ProbeOptions;
  #state: ProbeState;

  constructor(options: ProbeOptions) {
    this.#options = options;
    this.#state = { fault: undefined, since: options.clock.now() };
  }

  get state(): ProbeState {
    return this.#state;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, everyMs } = this.#options;
    while (!signal.aborted) {
      await clock.sleep(this.#state.fault === undefined ? everyMs : everyMs / 5, signal).catch(() => undefined);
      if (signal.aborted) return;
      this.#note(await this.#ask(signal));
    }
  }

  /** Any answer but that it does not know us proves that it is there. */
  async #ask(signal: AbortSignal): Promise<string | undefined> {
    try {
      await this.#options.client.request({ path: "/version", signal, timeoutMs: this.#options.timeoutMs });
      return undefined;
    } catch (error) {
      if (error instanceof KubeError && error.status >= 400 && error.status < 500 && !error.isUnauthorized) return undefined;
      return messageOf(error);
    }
  }

  #note(fault: string | undefined): void {
    const { clock, recovered, noted } = this.#options;
    const before = this.#state.fault;
    if ((fault === undefined) === (before === undefined)) {
      this.#state = { fault, since: this.#state.since };
      return;
    }
    this.#state = { fault, since: clock.now() };
    noted();
    if (fault === undefined) recovered();
  }
}
