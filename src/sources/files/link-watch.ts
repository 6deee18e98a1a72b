import type { DirectoryWatch } from "./directory-watch.ts";
import { type LinkMemo, linkSteps } from "./link-steps.ts";

/** Watches the links that lead to files: a swapped link changes a file although nothing happens where the file is listed. */
export class LinkWatch {
  readonly #directories: DirectoryWatch;
  #memo: LinkMemo = new Map();
  readonly #stops = new Map<string, readonly (() => void)[]>();

  constructor(directories: DirectoryWatch) {
    this.#directories = directories;
  }

  /** To be called before a new look: what links led to then may be wrong now. */
  refresh(): void {
    this.#memo = new Map();
  }

  /** Calls `onChange` when a link on the way to `target` changes, or what stands at its end. Replaces what was watched for `key`. */
  async follow(key: string, target: string, onChange: () => void): Promise<void> {
    const steps = await linkSteps(target, this.#memo);
    const before = this.#stops.get(key) ?? [];
    this.#stops.set(
      key,
      steps.map((step) => this.#directories.name(step.dir, step.name, onChange)),
    );
    for (const stop of before) stop();
  }

  forget(key: string): void {
    for (const stop of this.#stops.get(key) ?? []) stop();
    this.#stops.delete(key);
  }
}
