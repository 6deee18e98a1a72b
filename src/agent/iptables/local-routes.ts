import { EdgeError } from "../../base/errors.ts";
import type { InterceptOptions } from "./intercept-options.ts";
import type { Family } from "./intercept-rules.ts";
import type { RunTool } from "./run-tool.ts";

/** Address that Envoy's connections to the workload come from; IPv4 has all of 127.0.0.0/8 for that already. */
const PASS_THROUGH_6 = "::6/128";

/** What decides routes. */
export type RouteOptions = Pick<InterceptOptions, "mark" | "routeTable">;

/** Commands of `ip` that interception needs besides rules: marked packets are delivered here, and IPv6 has one more address of its own. */
export const routeCommands = ({ mode, mark, routeTable }: InterceptOptions, family: Family): readonly string[] => [
  ...(family === 6 ? [`-6 address replace ${PASS_THROUGH_6} dev lo`] : []),
  ...(mode === "TPROXY"
    ? [
        `-${family} rule add fwmark 0x${mark.toString(16)} lookup ${routeTable}`,
        `-${family} route replace local default dev lo table ${routeTable}`,
      ]
    : []),
];

/** Puts routes and addresses in place; what is there already stays. */
export async function addRoutes(run: RunTool, options: InterceptOptions, family: Family): Promise<void> {
  for (const command of routeCommands(options, family)) {
    const words = command.split(" ");
    if (words.includes("rule") && (await hasRule(run, options, family))) continue;
    const { status, stderr } = await run("ip", words);
    if (status !== 0)
      throw new EdgeError("interception_failed", `ip ${command}: ${stderr.trim()}`, { hint: "it takes root and the package iproute2" });
  }
}

/** Takes them away again; what is not there is no fault. */
export async function removeRoutes(run: RunTool, options: RouteOptions, family: Family): Promise<void> {
  await removeMarkRoutes(run, options, family);
  if (family === 6) await run("ip", ["-6", "address", "del", PASS_THROUGH_6, "dev", "lo"]);
}

/** Takes away what delivers marked packets here, which only transparent mode has. */
export async function removeMarkRoutes(run: RunTool, options: RouteOptions, family: Family): Promise<void> {
  while (await hasRule(run, options, family)) {
    const { status } = await run("ip", [`-${family}`, "rule", "del", ...ruleWords(options)]);
    if (status !== 0) break;
  }
  await run("ip", [`-${family}`, "route", "del", "local", "default", "dev", "lo", "table", String(options.routeTable)]);
}

const ruleWords = ({ mark, routeTable }: RouteOptions): readonly string[] => [
  "fwmark",
  `0x${mark.toString(16)}`,
  "lookup",
  String(routeTable),
];

const hasRule = async (run: RunTool, options: RouteOptions, family: Family): Promise<boolean> =>
  (await run("ip", [`-${family}`, "rule", "list", ...ruleWords(options)])).stdout.trim() !== "";
