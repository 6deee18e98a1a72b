import { existsSync } from "node:fs";
import { join } from "node:path";
import { V8_FLAGS } from "../../tools/bundle.mjs";

export interface ProgramPlace {
  readonly dist: string;
  /** Where the directory is for whoever runs it. */
  readonly seenAs?: string;
  /** NODE_OPTIONS it is run with. */
  readonly nodeOptions?: string | undefined;
}

/**
 * How Node runs a program of `dist/`: a control plane under the flags of V8 that `bin/run` has for it, and from its snapshot where there is one and no module is to be
 * loaded before it. Unlike there, nothing is built first, the environment is the caller's, and agents and `istioctl` run under V8's own defaults.
 */
export function programArgs(program: string, { dist, seenAs = dist, nodeOptions = "" }: ProgramPlace): readonly string[] {
  const usable = existsSync(join(dist, `${program}.blob`)) && !/import|require|loader|-r /.test(nodeOptions);
  const flags = program.startsWith("istiod") ? V8_FLAGS : [];
  return [...flags, ...(usable ? ["--snapshot-blob", join(seenAs, `${program}.blob`)] : []), join(seenAs, `${program}.mjs`)];
}
