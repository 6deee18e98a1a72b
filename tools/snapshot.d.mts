import type { build } from "esbuild";

export function snapshot(options: {
  readonly root: string;
  readonly out: string;
  readonly program: string;
  readonly build: typeof build;
}): Promise<void>;
