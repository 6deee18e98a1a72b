import { EdgeError } from "../../base/errors.ts";
import { findIptables } from "./find-iptables.ts";
import type { InterceptOptions } from "./intercept-options.ts";
import { type Family, interceptRules, type TableRules } from "./intercept-rules.ts";
import { addRoutes, type RouteOptions, removeMarkRoutes, removeRoutes } from "./local-routes.ts";
import { restoreText, sameRules } from "./restore-text.ts";
import type { RunTool } from "./run-tool.ts";

export interface InterceptDeps {
  readonly run: RunTool;
  readonly families: readonly Family[];
  /** `nft`, `legacy`, or whichever works. */
  readonly binary?: string;
}

/** How long to wait for others who change rules at the moment. */
const LOCK_SECONDS = "30";

/** Puts the rules in force. What is there already stays, and what of ours is there and not wanted goes. Gives whether anything was changed. */
export async function applyInterception(options: InterceptOptions, deps: InterceptDeps): Promise<boolean> {
  const changes = await Promise.all(deps.families.map(async (family) => changeFor(deps, family, interceptRules(options, family))));
  const needed = changes.filter(({ text }) => text !== "");
  // Before anything else: where rules cannot be, routes and addresses are not left behind.
  for (const change of needed) await make(deps.run, change, ["--test"]);
  await addAllRoutes(
    options,
    deps,
    changes.some(({ hadRules }) => hadRules),
  );
  try {
    for (const change of needed) await make(deps.run, change);
  } catch (error) {
    // Half of the rules is worse than none: the one family through Envoy, the other past it.
    await removeInterception(options, deps).catch(() => {});
    throw error;
  }
  // Of rules of before that were transparent.
  if (needed.length > 0 && options.mode !== "TPROXY") for (const family of deps.families) await removeMarkRoutes(deps.run, options, family);
  return needed.length > 0;
}

/** All routes or none; those that rules in force may need are left alone. */
async function addAllRoutes(options: InterceptOptions, { run, families }: InterceptDeps, mayBeNeeded: boolean): Promise<void> {
  try {
    for (const family of families) await addRoutes(run, options, family);
  } catch (error) {
    if (!mayBeNeeded) for (const family of families) await removeRoutes(run, options, family);
    throw error;
  }
}

/** Removes every rule, chain, route and address of ours, in both families. Gives whether there were rules. */
export async function removeInterception(options: RouteOptions, deps: InterceptDeps): Promise<boolean> {
  let changed = false;
  for (const family of [4, 6] as const) {
    const isUsed = deps.families.includes(family) || typeof (await findIptables(deps.run, family, deps.binary)) !== "string";
    if (!isUsed) continue;
    const change = await changeFor(deps, family, []);
    if (change.text !== "") await make(deps.run, change);
    changed ||= change.text !== "";
    await removeRoutes(deps.run, options, family);
  }
  return changed;
}

/** Whether exactly the rules of these options are in force. */
export async function isIntercepted(options: InterceptOptions, deps: InterceptDeps): Promise<boolean> {
  for (const family of deps.families) if ((await changeFor(deps, family, interceptRules(options, family))).text !== "") return false;
  return true;
}

interface Change {
  readonly restore: string;
  /** Empty where nothing is to be done. */
  readonly text: string;
  /** There are rules of ours already. */
  readonly hadRules: boolean;
}

async function changeFor({ run, binary }: InterceptDeps, family: Family, wanted: readonly TableRules[]): Promise<Change> {
  const found = await findIptables(run, family, binary);
  if (typeof found === "string")
    throw new EdgeError("interception_failed", found, { hint: "it takes root (CAP_NET_ADMIN) and the package iptables" });
  const { restore, inForce } = found;
  return { restore, hadRules: inForce.length > 0, text: sameRules(wanted, inForce) ? "" : restoreText(wanted, inForce) };
}

async function make(run: RunTool, { restore, text }: Change, flags: readonly string[] = []): Promise<void> {
  const { status, stderr } = await run(restore, ["--noflush", "-w", LOCK_SECONDS, ...flags], text);
  if (status === 0) return;
  throw new EdgeError("interception_failed", `${restore} failed: ${stderr.trim().split("\n").join("; ") || "it said nothing"}`, {
    hint: "it takes root (CAP_NET_ADMIN) and a kernel with netfilter; --dry-run prints the rules",
  });
}
