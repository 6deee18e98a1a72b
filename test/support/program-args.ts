import { existsSync } from "node:fs";
import { join } from "node:path";

export interface ProgramPlace {
  readonly dist: string;
  /** Where the directory is for whoever runs it. */
  readonly seenAs?: string;
  /** NODE_OPTIONS it is run with. */
  readonly nodeOptions?: string | undefined;
}

/** How Node runs a program of `dist/`: from its snapshot where there is one and no module is to be loaded before it, as `bin/run` does. */
export function programArgs(program: string, { dist, seenAs = dist, nodeOptions = "" }: ProgramPlace): readonly string[] {
  const usable = existsSync(join(dist, `${program}.blob`)) && !/import|require|loader|-r /.test(nodeOptions);
  return [...(usable ? ["--snapshot-blob", join(seenAs, `${program}.blob`)] : []), join(seenAs, `${program}.mjs`)];
}
