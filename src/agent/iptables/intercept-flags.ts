import { parseArgs } from "node:util";
import { type Cidr, formatIp, parseCidr } from "../../base/address.ts";
import { EdgeError, firstSentenceOf } from "../../base/errors.ts";
import { isOn } from "../../base/go-bool.ts";
import { INTERCEPT_FLAGS, INTERCEPT_VARIABLES, type InterceptFlag, variablesOfFlag } from "../../settings/intercept-table.ts";
import { readValue } from "../../settings/read-value.ts";
import type { InterceptOptions, Selection } from "./intercept-options.ts";

/** Long names of the flags. */
export type FlagName = keyof typeof INTERCEPT_FLAGS;
/** All flags as they are in force: from the command line, the environment or their defaults. */
export type FlagValues = Readonly<Record<FlagName, string>>;
type Env = Readonly<Record<string, string | undefined>>;

/** Reads flags, and variables for those that are not given. Throws `EdgeError` for what is not understood. */
export function readFlags(args: readonly string[], env: Env): FlagValues {
  const given = parse(args);
  const read = ([name, flag]: readonly [string, InterceptFlag]): readonly [string, string] => {
    const set = variablesOfFlag(name, flag)
      .map((variable) => env[variable])
      .find((value) => value !== undefined);
    return [name, given.get(name) ?? set ?? flag.default ?? ""];
  };
  return Object.fromEntries(Object.entries(INTERCEPT_FLAGS).map(read)) as FlagValues;
}

function parse(args: readonly string[]): ReadonlyMap<string, string> {
  const given = new Map<string, string>();
  const options = Object.fromEntries(
    Object.entries(INTERCEPT_FLAGS).map(([name, flag]: [string, InterceptFlag]) => [
      name,
      { type: flag.type ?? ("string" as const), ...(flag.short !== undefined && { short: flag.short }) },
    ]),
  );
  try {
    // `--redirect-dns=false` is how Go's flags are switched off.
    const plain = args.map(spelledOut).filter((arg) => {
      const [, name = "", value = ""] = /^--([a-z_-]+)=(.*)$/s.exec(arg) ?? [];
      if ((INTERCEPT_FLAGS as Record<string, InterceptFlag>)[name]?.type !== "boolean") return true;
      given.set(name, value);
      return false;
    });
    const { values } = parseArgs({ args: joined(plain), options, strict: true, allowPositionals: false });
    for (const [name, value] of Object.entries(values)) given.set(name, String(value));
  } catch (error) {
    throw new EdgeError("usage", firstSentenceOf(error), { hint: "see istio-agent iptables --help" });
  }
  return given;
}

const longNames = (): ReadonlyMap<string, string> =>
  new Map(
    Object.entries(INTERCEPT_FLAGS).flatMap(([name, flag]: [string, InterceptFlag]) =>
      flag.short === undefined ? [] : [[`-${flag.short}`, name]],
    ),
  );

/** Go's short flags may have their value behind an equals sign, too: `-b=*`. */
function spelledOut(word: string): string {
  const [, short = "", value = ""] = /^(-[a-z])=(.*)$/s.exec(word) ?? [];
  const name = longNames().get(short);
  return name === undefined ? word : `--${name}=${value}`;
}

/** A flag and its value as one word: the value may be empty, or begin with a dash. */
function joined(args: readonly string[]): string[] {
  const short = longNames();
  const words: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const word = args[at] ?? "";
    const name = short.get(word) ?? word.replace(/^--/, "");
    const flag = (INTERCEPT_FLAGS as Record<string, InterceptFlag>)[name];
    const value = args[at + 1];
    if (word.startsWith("-") && flag !== undefined && flag.type !== "boolean" && value !== undefined) {
      words.push(`--${name}=${value}`);
      at += 1;
    } else words.push(word);
  }
  return words;
}

/** What options need to know of the machine. */
export interface MachineFacts {
  /** The user Envoy runs as by default. */
  readonly proxyUser: string;
  /** Servers of resolv.conf. */
  readonly resolvers: readonly string[];
  readonly env: Env;
  /** Numbers of the machine's users and groups by name: rules in force have numbers, by which they are known again. */
  readonly userIds?: ReadonlyMap<string, string>;
  readonly groupIds?: ReadonlyMap<string, string>;
}

/** Turns flags into options. Throws `EdgeError` that names the flag whose value is none. */
export function interceptOptions(flags: FlagValues, machine: MachineFacts): InterceptOptions {
  const users = words(flags["proxy-uid"] || machine.proxyUser);
  const groups = flags["proxy-gid"] === "" ? users : words(flags["proxy-gid"]);
  return {
    mode: modeOf(flags["istio-inbound-interception-mode"]),
    outboundPort: portOf("envoy-port", flags["envoy-port"]),
    inboundPort: portOf("inbound-capture-port", flags["inbound-capture-port"]),
    tunnelPort: portOf("inbound-tunnel-port", flags["inbound-tunnel-port"]),
    proxyUsers: users.map((user) => numbered(checked("proxy-uid", user, NAME), machine.userIds)),
    proxyGroups: groups.map((group) => numbered(checked("proxy-gid", group, NAME), machine.groupIds)),
    inboundPorts: selection("istio-inbound-ports", flags, portOf),
    inboundPortsExcluded: list("istio-local-exclude-ports", flags, portOf),
    outboundRanges: selection("istio-service-cidr", flags, rangeOf),
    outboundRangesExcluded: list("istio-service-exclude-cidr", flags, rangeOf),
    outboundPorts: list("istio-outbound-ports", flags, portOf),
    outboundPortsExcluded: list("istio-local-outbound-ports-exclude", flags, portOf),
    ...ownerGroups(machine),
    excludedInterfaces: list("istio-exclude-interfaces", flags, interfaceOf),
    virtualInterfaces: list("kube-virt-interfaces", flags, interfaceOf),
    dnsServers: !isOn(flags["redirect-dns"]) ? [] : isOn(flags["capture-all-dns"]) ? "all" : machine.resolvers,
    dropInvalid: isOn(flags["drop-invalid"]),
    loopback4: loopbackOf(machine.env.ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR || INTERCEPT_VARIABLES.ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR.default),
    ...routeOptions(flags),
  };
}

/** What removal needs: nothing that may be wrong with the rest keeps from it. */
export const routeOptions = (flags: FlagValues): Pick<InterceptOptions, "mark" | "routeTable"> => ({
  mark: numberOf("istio-inbound-tproxy-mark", flags["istio-inbound-tproxy-mark"], 0xffffffff),
  routeTable: numberOf("istio-inbound-tproxy-route-table", flags["istio-inbound-tproxy-route-table"], 0xffffffff),
});

/** What validation by traffic needs. */
export function probeOptions(flags: FlagValues): { readonly probePort: number; readonly timeoutMs: number } {
  const timeout = readValue({ type: "duration" }, flags["probe-timeout"]);
  if ("fault" in timeout) throw wrong("probe-timeout", flags["probe-timeout"]);
  return { probePort: portOf("iptables-probe-port", flags["iptables-probe-port"]), timeoutMs: Number(timeout.value) };
}

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/;
const INTERFACE = /^[A-Za-z0-9_.:@-]{1,15}\+?$/;

const words = (text: string): readonly string[] =>
  text
    .split(",")
    .map((word) => word.trim())
    .filter((word) => word !== "");

/** Values become part of rules: what could be anything else than one value never gets there. */
function checked(flag: string, value: string, pattern: RegExp): string {
  if (pattern.test(value)) return value;
  throw wrong(flag, value);
}

/** A name that the machine does not know is iptables' to judge. */
const numbered = (name: string, ids: ReadonlyMap<string, string> | undefined): string => ids?.get(name) ?? name;

const wrong = (flag: string, value: string): EdgeError =>
  new EdgeError("usage", `--${flag}: ${JSON.stringify(value)} is not understood`, { hint: "see istio-agent iptables --help" });

function numberOf(flag: string, value: string, largest: number): number {
  const number = /^(\d+|0x[0-9a-fA-F]+)$/.test(value) ? Number(value) : 0;
  if (number < 1 || number > largest) throw wrong(flag, value);
  return number;
}

const portOf = (flag: string, value: string): number => numberOf(flag, value, 65_535);
const interfaceOf = (flag: string, value: string): string => checked(flag, value, INTERFACE);

function rangeOf(flag: string, value: string): Cidr {
  const range = parseCidr(value);
  if (range === undefined) throw wrong(flag, value);
  return range;
}

function modeOf(value: string): InterceptOptions["mode"] {
  if (value === "TPROXY" || value === "REDIRECT") return value;
  if (value === "") return "REDIRECT";
  throw new EdgeError("usage", `${JSON.stringify(value)} is no mode of interception`, {
    hint: "there are REDIRECT and TPROXY; istio-agent iptables clean removes the rules",
  });
}

function loopbackOf(value: string): string {
  const range = parseCidr(value);
  if (range?.family !== 4 || range.base >> 24n !== 127n) throw wrong("ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR", value);
  return `${formatIp({ family: 4, value: range.base })}/${range.prefix}`;
}

const list = <T>(flag: FlagName, flags: FlagValues, read: (flag: string, value: string) => T): readonly T[] =>
  words(flags[flag]).map((value) => read(flag, value));

const selection = <T>(flag: FlagName, flags: FlagValues, read: (flag: string, value: string) => T): Selection<T> =>
  flags[flag].trim() === "*" ? "all" : list(flag, flags, read);

/** No flags in Istio either. */
function ownerGroups({ env, groupIds }: MachineFacts): Pick<InterceptOptions, "ownerGroups" | "ownerGroupsExcluded"> {
  const included = env.ISTIO_OUTBOUND_OWNER_GROUPS ?? "*";
  const groups = (text: string, variable: string): readonly string[] =>
    words(text).map((group) => numbered(checked(variable, group, NAME), groupIds));
  return {
    ownerGroups: included.trim() === "*" ? "all" : groups(included, "ISTIO_OUTBOUND_OWNER_GROUPS"),
    ownerGroupsExcluded: groups(env.ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE ?? "", "ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE"),
  };
}
