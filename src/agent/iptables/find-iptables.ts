import type { Family, TableRules } from "./intercept-rules.ts";
import { readSaved } from "./restore-text.ts";
import type { RunTool } from "./run-tool.ts";

/** A program that works here, and what of ours it says is in force. */
export interface Iptables {
  readonly restore: string;
  readonly inForce: readonly TableRules[];
}

const VARIANTS = ["", "-nft", "-legacy"] as const;

/**
 * Finds the program that works here: the one without a suffix is what the distribution chose, so it comes first. Gives the reason in a sentence
 * where none does. `forced` is `nft`, `legacy` or nothing.
 */
export async function findIptables(run: RunTool, family: Family, forced = ""): Promise<Iptables | string> {
  const base = family === 4 ? "iptables" : "ip6tables";
  const variants = forced === "" ? VARIANTS : VARIANTS.filter((variant) => variant === `-${forced}`);
  let reason = `${base}-restore is not installed`;
  for (const variant of variants) {
    const save = `${base}${variant}-save`;
    const { status, stdout, stderr } = await run(save, []);
    if (status === 0) return { restore: `${base}${variant}-restore`, inForce: readSaved(stdout) };
    if (status !== undefined) reason = `${save} does not work: ${stderr.trim().split("\n")[0] ?? ""}`;
  }
  return reason;
}
