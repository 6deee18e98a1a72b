import type { build } from "esbuild";

/** What a start compiles: positions of functions by script, and modules of Node. */
export interface UsedCode {
  readonly functions: Readonly<Record<string, readonly number[]>>;
  readonly modules: readonly string[];
}

export interface Rehearsal {
  readonly root: string;
  readonly node: string;
  /** For V8. */
  readonly flags: readonly string[];
  /** The snapshot to start from. */
  readonly blob: string;
  /** The bundle of the program. */
  readonly entry: string;
  /** A directory for what is needed on the way. */
  readonly work: string;
}

export function snapshot(options: {
  readonly root: string;
  readonly out: string;
  readonly program: string;
  readonly flags?: readonly string[];
  readonly build: typeof build;
  readonly rehearse?: (rehearsal: Rehearsal) => Promise<UsedCode>;
}): Promise<void>;
