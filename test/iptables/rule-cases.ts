import { join } from "node:path";
import { load } from "js-yaml";
import { interceptOptions, readFlags } from "../../src/agent/iptables/intercept-flags.ts";
import type { InterceptOptions } from "../../src/agent/iptables/intercept-options.ts";
import { type GoldenCase, goldenCases } from "../support/golden.ts";

/** Options of every golden case of rules. */
export const ruleCases = (): readonly (GoldenCase & { readonly options: InterceptOptions })[] =>
  goldenCases(join(import.meta.dirname)).map((one) => ({ ...one, options: optionsOf(one.input) }));

function optionsOf(input: string): InterceptOptions {
  const { flags, env = {}, resolvers = [] } = load(input) as { flags: string; env?: Record<string, string>; resolvers?: string[] };
  const args = flags
    .split(" ")
    .filter((word) => word !== "")
    .flatMap((word) => (/^-[a-z]=$/.test(word) ? [word.slice(0, 2), ""] : [word]));
  return interceptOptions(readFlags(args, env), { env, resolvers, proxyUser: "1337" });
}
