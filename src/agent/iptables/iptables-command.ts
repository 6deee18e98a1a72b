import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { systemClock } from "../../base/clock.ts";
import { EdgeError } from "../../base/errors.ts";
import { isOn } from "../../base/go-bool.ts";
import { INTERCEPT_FLAGS, INTERCEPT_VARIABLES, type InterceptFlag } from "../../settings/intercept-table.ts";
import type { CommandHost } from "../commands.ts";
import { readResolvConf } from "../dns/resolv-conf.ts";
import { withSidecarEnv } from "../sidecar-env.ts";
import { applyInterception, type InterceptDeps, isIntercepted, removeInterception } from "./intercept.ts";
import { type FlagValues, interceptOptions, probeOptions, readFlags, routeOptions } from "./intercept-flags.ts";
import type { InterceptOptions } from "./intercept-options.ts";
import { type Family, interceptRules } from "./intercept-rules.ts";
import { routeCommands } from "./local-routes.ts";
import { probeInterception } from "./probe-interception.ts";
import { restoreText } from "./restore-text.ts";
import { createRunTool } from "./run-tool.ts";

/** Status that tells the validating container of injection that there is no interception. */
const NOT_INTERCEPTED = 126;
const DEFAULT_PROXY_USER = "1337";

/** `istio-agent iptables`: puts the rules in force or removes them. Gives the exit status; throws `EdgeError` where it cannot. */
export async function iptablesCommand(args: readonly string[], host: CommandHost): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) {
    host.print(iptablesHelp());
    return 0;
  }
  const clean = args[0] === "clean";
  const env = await withSidecarEnv(host.baseDir, host.env);
  const flags = readFlags(clean ? args.slice(1) : args, env);
  const deps = depsOf(flags, host);
  const isDry = isOn(flags["dry-run"]);
  if (clean || isOn(flags["cleanup-only"])) {
    if (isDry) host.print("# every chain ISTIO_* of ours and every rule that leads there would be removed\n");
    else
      host.print((await removeInterception(routeOptions(flags), deps)) ? "The rules are removed.\n" : "There were no rules to remove.\n");
    return 0;
  }
  const options = await optionsOf(flags, env);
  if (isOn(flags["redirect-dns"]) && options.dnsServers.length === 0)
    host.print("# resolv.conf names no server: names are not intercepted (--capture-all-dns takes any server)\n");
  if (isDry) {
    host.print(dryRun(options, deps.families));
    return 0;
  }
  if (!isOn(flags["skip-rule-apply"]))
    host.print((await applyInterception(options, deps)) ? "The rules are in force.\n" : "The rules were in force already.\n");
  if (!isOn(flags["run-validation"])) return 0;
  const reason = await whyNotIntercepted(options, { deps, flags, host });
  if (reason === undefined) return 0;
  host.print(`The rules are not in force, so this workload is not ready for the mesh: ${reason}.\n`);
  return NOT_INTERCEPTED;
}

interface Validation {
  readonly deps: InterceptDeps;
  readonly flags: FlagValues;
  readonly host: CommandHost;
}

/**
 * Root sees rules, and those of ours are known by their text. The validating container of a pod has no privileges, and the rules there are those of
 * Istio's CNI plugin: what they do is seen by traffic, as the user whose traffic shows it.
 */
async function whyNotIntercepted(options: InterceptOptions, { deps, flags, host }: Validation): Promise<string | undefined> {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot && (await isIntercepted(options, deps).catch(() => false))) return undefined;
  if (flags["network-namespace"] !== "") return "the namespace does not have them";
  const { probePort, timeoutMs } = probeOptions(flags);
  if (isRoot) becomeProxy(options);
  const families = deps.families.filter((family) => host.interfaces.some(({ address }) => isIP(address) === family));
  for (const family of families.length === 0 ? [4 as const] : families) {
    const reason = await probeInterception({ ...options, family, probePort, timeoutMs }, systemClock);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

/** For the rest of this short process. Where it may not, the probe fails as it would for any other user. */
function becomeProxy({ proxyUsers: [user = DEFAULT_PROXY_USER], proxyGroups: [group = user] }: InterceptOptions): void {
  const idOf = (name: string): string | number => (/^\d+$/.test(name) ? Number(name) : name);
  try {
    process.setegid?.(idOf(group));
    process.seteuid?.(idOf(user));
  } catch {
    // The user may be unknown here, or a capability be missing.
  }
}

async function optionsOf(flags: FlagValues, env: NodeJS.ProcessEnv): Promise<InterceptOptions> {
  const asksResolvers = isOn(flags["redirect-dns"]) && !isOn(flags["capture-all-dns"]);
  const resolvers = asksResolvers ? (await readResolvConf("/etc/resolv.conf")).servers : [];
  const [userIds, groupIds] = await Promise.all([idsIn("/etc/passwd"), idsIn("/etc/group")]);
  const user = env.ENVOY_USER || INTERCEPT_VARIABLES.ENVOY_USER.default;
  const proxyUser = /^\d+$/.test(user) ? user : (userIds.get(user) ?? DEFAULT_PROXY_USER);
  return interceptOptions(flags, { env, resolvers, proxyUser, userIds, groupIds });
}

function depsOf(flags: FlagValues, { env, interfaces }: CommandHost): InterceptDeps {
  const binary = flags["force-iptables-binary"];
  if (!["", "nft", "legacy"].includes(binary))
    throw new EdgeError("usage", `--force-iptables-binary: ${JSON.stringify(binary)} is not understood`, {
      hint: "there are nft and legacy",
    });
  const namespace = flags["network-namespace"];
  return {
    run: createRunTool(env, namespace === "" ? [] : ["nsenter", `--net=${namespace}`]),
    families: familiesOf(flags["dual-stack"], namespace === "" ? interfaces : undefined),
    binary,
  };
}

/** Envoy listens on IPv6 where there is no other, and on both where the mesh is dual-stack, which the machine cannot know. Addresses are not known of another namespace. */
export function familiesOf(dualStack: string, interfaces: CommandHost["interfaces"] | undefined): readonly Family[] {
  const isIpv6 = ({ address }: { readonly address: string }): boolean => address.includes(":");
  const [first] = interfaces ?? [];
  const both = isOn(dualStack) ? (interfaces?.some(isIpv6) ?? true) : first !== undefined && isIpv6(first);
  return both ? [4, 6] : [4];
}

/** Names and numbers of a file such as `/etc/passwd`. */
async function idsIn(file: string): Promise<ReadonlyMap<string, string>> {
  const lines = (await readFile(file, "utf8").catch(() => "")).split("\n").map((line) => line.split(":"));
  return new Map(lines.flatMap(([name = "", , id = ""]) => (/^\d+$/.test(id) ? [[name, id] as const] : [])));
}

function dryRun(options: InterceptOptions, families: readonly Family[]): string {
  return families
    .map((family) => {
      const commands = routeCommands(options, family).map((command) => `# ip ${command}\n`);
      return `# ${family === 4 ? "iptables" : "ip6tables"}-restore --noflush\n${commands.join("")}${restoreText(interceptRules(options, family))}`;
    })
    .join("");
}

function iptablesHelp(): string {
  const lines = Object.entries(INTERCEPT_FLAGS).map(([name, flag]: [string, InterceptFlag]) => {
    const left = `${flag.short === undefined ? "    " : `-${flag.short}, `}--${name}`;
    return `  ${left.padEnd(44)}${flag.about}${flag.default === undefined ? "" : ` [${flag.default}]`}`;
  });
  return `istio-agent iptables: sends a machine's connections through its Envoy, or stops doing so

usage: istio-agent iptables [flags]
       istio-agent iptables clean [flags]

Each flag may also be a variable (--proxy-uid is PROXY_UID), set here or in var/lib/istio/envoy/sidecar.env; the flag wins.
Lists are separated by commas.

${lines.join("\n")}
`;
}
