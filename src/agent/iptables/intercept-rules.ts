import { type Cidr, cidrContains, formatIp, parseIp } from "../../base/address.ts";
import { DNS_PORT, type InterceptOptions } from "./intercept-options.ts";

/** Of IP addresses; each has tables of its own. */
export type Family = 4 | 6;
/** Tables of iptables that rules are put into. */
export type TableName = "raw" | "mangle" | "nat";

/** Chains of ours, each with its rules, and the rules of the machine's own chains that lead to them. */
export interface TableRules {
  readonly table: TableName;
  readonly chains: ReadonlyMap<string, readonly string[]>;
  /** `PREROUTING -j ISTIO_PREROUTING`. */
  readonly jumps: readonly string[];
}

/** Every chain that is or, in Istio, was ours: nothing else is ever touched. */
export const OWN_CHAINS: readonly string[] = [
  "ISTIO_PREROUTING",
  "ISTIO_INBOUND",
  "ISTIO_OUTPUT",
  "ISTIO_OUTPUT_DNS",
  "ISTIO_REDIRECT",
  "ISTIO_IN_REDIRECT",
  "ISTIO_DIVERT",
  "ISTIO_TPROXY",
  "ISTIO_DROP",
];

/** Source of Envoy's own connections to the workload, by which they are told from the workload's. */
const PASS_THROUGH = { 4: "127.0.0.6/32", 6: "::6/128" } as const;
/** Marks what Envoy sends to its own machine, so that it is intercepted once more, and only once. */
const LOCAL_MARK = 1_338;
const ALL_BITS = "0xffffffff";
const LOOPBACK: readonly Cidr[] = [
  { family: 4, base: 0x7f000000n, prefix: 8 },
  { family: 6, base: 1n, prefix: 128 },
];

/**
 * The rules of one family, pure: equal options give equal rules. They are written the way `iptables-save` prints them, so that what is in force can
 * be compared with what is wanted. The machine's own chains get nothing but a jump, by which everything of ours is found again and removed.
 * Order and meaning are those of Istio's rules.
 */
export function interceptRules(options: InterceptOptions, family: Family): readonly TableRules[] {
  return [rawTable(options, family), mangleTable(options, family), natTable(options, family)].filter(({ chains }) => chains.size > 0);
}

const redirectsDns = (options: InterceptOptions, family: Family): boolean => dnsServers(options, family).length > 0;

/** Matches of the servers that names are asked from: one that matches all, or one a server. */
function dnsServers({ dnsServers: servers }: InterceptOptions, family: Family): readonly string[] {
  if (servers === "all") return [""];
  return servers.flatMap((server) => {
    const ip = parseIp(server);
    return ip?.family === family ? [`${formatIp(ip)}/${family === 4 ? 32 : 128}`] : [];
  });
}

/** Questions of programs to the agent and of the agent to servers have the same ports at one end: apart in connection tracking they cannot mix. */
function rawTable(options: InterceptOptions, family: Family): TableRules {
  const servers = dnsServers(options, family);
  if (servers.length === 0) return { table: "raw", chains: new Map(), jumps: [] };
  const owners = ownerMatches(options);
  const output = [
    ...owners.flatMap((owner) => [
      `-p udp -m udp --dport 53 ${owner} -j CT --zone 1`,
      `-p udp -m udp --sport ${DNS_PORT} ${owner} -j CT --zone 2`,
    ]),
    ...servers.map((server) => `${to(server)}-p udp -m udp --dport 53 -j CT --zone 2`),
  ];
  const inbound = servers.map((server) => `${from(server)}-p udp -m udp --sport 53 -j CT --zone 1`);
  return {
    table: "raw",
    chains: new Map([
      ["ISTIO_INBOUND", inbound],
      ["ISTIO_OUTPUT_DNS", output],
    ]),
    jumps: ["PREROUTING -j ISTIO_INBOUND", "OUTPUT -j ISTIO_OUTPUT_DNS"],
  };
}

function mangleTable(options: InterceptOptions, family: Family): TableRules {
  const transparent = options.mode === "TPROXY";
  const chains = new Map<string, readonly string[]>();
  const excluded = (flag: string): readonly string[] =>
    transparent ? options.excludedInterfaces.map((name) => `${flag} ${name} -j RETURN`) : [];
  const mark = hex(options.mark);
  const before = [
    ...excluded("-i"),
    ...(options.dropInvalid ? ["-m conntrack --ctstate INVALID -j ISTIO_DROP"] : []),
    // What Envoy sends to the workload under the caller's address carries the mark; it is kept for the whole connection.
    ...(transparent
      ? ["-p tcp -j ISTIO_INBOUND", `-p tcp -m mark --mark ${mark} -j CONNMARK --save-mark --nfmask ${ALL_BITS} --ctmask ${ALL_BITS}`]
      : []),
  ];
  if (before.length > 0) chains.set("ISTIO_PREROUTING", before);
  if (options.dropInvalid) chains.set("ISTIO_DROP", ["-j DROP"]);
  if (transparent) {
    chains.set("ISTIO_INBOUND", transparentInbound(options, family));
    chains.set("ISTIO_DIVERT", [`-j MARK --set-xmark ${mark}/${ALL_BITS}`, "-j ACCEPT"]);
    chains.set("ISTIO_TPROXY", [
      `! -d ${loopback(options, family)} -p tcp -j TPROXY --on-port ${options.inboundPort} --on-ip ${family === 4 ? "0.0.0.0" : "::"} --tproxy-mark ${mark}/${ALL_BITS}`,
    ]);
    chains.set("ISTIO_OUTPUT", [
      ...excluded("-o"),
      `-o lo -p tcp -m mark --mark ${mark} -j RETURN`,
      ...ownerMatches(options).map(
        (owner) => `! -d ${loopback(options, family)} -o lo -p tcp ${owner} -j MARK --set-xmark ${hex(LOCAL_MARK)}/${ALL_BITS}`,
      ),
      `-p tcp -m connmark --mark ${mark} -j CONNMARK --restore-mark --nfmask ${ALL_BITS} --ctmask ${ALL_BITS}`,
    ]);
  }
  const jumps = [
    ...(chains.has("ISTIO_PREROUTING") ? ["PREROUTING -j ISTIO_PREROUTING"] : []),
    ...(transparent ? ["OUTPUT -j ISTIO_OUTPUT"] : []),
  ];
  return { table: "mangle", chains, jumps };
}

function transparentInbound(options: InterceptOptions, family: Family): readonly string[] {
  const ports = options.inboundPorts === "all" ? [""] : options.inboundPorts.map((port) => `-m tcp --dport ${port} `);
  return [
    `-p tcp -m mark --mark ${hex(options.mark)} -j RETURN`,
    `-s ${PASS_THROUGH[family]} -i lo -p tcp -j RETURN`,
    `-i lo -p tcp -m mark ! --mark ${hex(LOCAL_MARK)} -j RETURN`,
    // What Envoy sends to its own machine comes back to it whatever the port, as where connections are redirected: it is in mutual TLS.
    "-i lo -p tcp -m conntrack --ctstate RELATED,ESTABLISHED -j ISTIO_DIVERT",
    "-i lo -p tcp -j ISTIO_TPROXY",
    ...(options.inboundPorts === "all" ? options.inboundPortsExcluded.map((port) => `-p tcp -m tcp --dport ${port} -j RETURN`) : []),
    ...ports.flatMap((port) => [
      `-p tcp ${port}-m conntrack --ctstate RELATED,ESTABLISHED -j ISTIO_DIVERT`,
      `-p tcp ${port}-j ISTIO_TPROXY`,
    ]),
  ];
}

function natTable(options: InterceptOptions, family: Family): TableRules {
  const chains = new Map<string, readonly string[]>([
    ["ISTIO_PREROUTING", natPrerouting(options, family)],
    ["ISTIO_INBOUND", natInbound(options)],
    ["ISTIO_OUTPUT", natOutput(options, family)],
    ["ISTIO_REDIRECT", [`-p tcp -j REDIRECT --to-ports ${options.outboundPort}`]],
    ["ISTIO_IN_REDIRECT", [`-p tcp -j REDIRECT --to-ports ${options.inboundPort}`]],
  ]);
  if (redirectsDns(options, family)) chains.set("ISTIO_OUTPUT_DNS", dnsRedirect(options, family));
  return { table: "nat", chains, jumps: ["PREROUTING -j ISTIO_PREROUTING", "OUTPUT -j ISTIO_OUTPUT"] };
}

function natPrerouting(options: InterceptOptions, family: Family): readonly string[] {
  const { virtualInterfaces, excludedInterfaces, mode, inboundPorts } = options;
  const targets = rangesOf(options.outboundRanges, family);
  return [
    ...virtualInterfaces.flatMap((name) => [...targets.map((range) => `${to(range)}-i ${name} -j ISTIO_REDIRECT`), `-i ${name} -j RETURN`]),
    ...excludedInterfaces.map((name) => `-i ${name} -j RETURN`),
    ...(mode === "REDIRECT" && !isNone(inboundPorts) ? ["-p tcp -j ISTIO_INBOUND"] : []),
  ];
}

function natInbound({ mode, inboundPorts, inboundPortsExcluded, tunnelPort }: InterceptOptions): readonly string[] {
  const tunnel = `-p tcp -m tcp --dport ${tunnelPort} -j RETURN`;
  if (mode === "TPROXY") return [tunnel];
  if (inboundPorts !== "all") return [tunnel, ...inboundPorts.map((port) => `-p tcp -m tcp --dport ${port} -j ISTIO_IN_REDIRECT`)];
  return [tunnel, ...inboundPortsExcluded.map((port) => `-p tcp -m tcp --dport ${port} -j RETURN`), "-p tcp -j ISTIO_IN_REDIRECT"];
}

function natOutput(options: InterceptOptions, family: Family): readonly string[] {
  const dns = redirectsDns(options, 4) || redirectsDns(options, 6);
  const owners = ownerMatches(options);
  const loopbackIncluded = options.outboundRanges !== "all" && options.outboundRanges.some(isLoopback);
  const notTunnel = dns ? `-m multiport ! --dports 53,${options.tunnelPort}` : `-m tcp ! --dport ${options.tunnelPort}`;
  return [
    ...options.excludedInterfaces.map((name) => `-o ${name} -j RETURN`),
    ...options.outboundPortsExcluded.flatMap((port) => [
      `-p tcp -m tcp --dport ${port} -j RETURN`,
      `-p udp -m udp --dport ${port} -j RETURN`,
    ]),
    `-s ${PASS_THROUGH[family]} -o lo -j RETURN`,
    // A program that calls its own service by the service's address: through Envoy out, and through Envoy in. In transparent mode the mark does that.
    ...(options.mode === "REDIRECT"
      ? owners.map((owner) => `! -d ${loopback(options, family)} -o lo -p tcp ${notTunnel} ${owner} -j ISTIO_IN_REDIRECT`)
      : []),
    // What Envoy and the agent send otherwise is left alone: this is what prevents loops.
    ...owners.map((owner) => `${owner} -j RETURN`),
    // What is left on loopback is between programs of the workload. Names may be asked for on a loopback address, though.
    ...(loopbackIncluded ? [] : [dns ? "-o lo -p tcp -m tcp ! --dport 53 -j RETURN" : "-o lo -j RETURN"]),
    ...groupRules(options),
    ...(redirectsDns(options, family) ? ["-j ISTIO_OUTPUT_DNS"] : []),
    `-d ${loopback(options, family)} -j RETURN`,
    ...rangesOf(options.outboundRangesExcluded, family).map((range) => `-d ${range} -j RETURN`),
    ...options.outboundPorts.map((port) => `-p tcp -m tcp --dport ${port} -j ISTIO_REDIRECT`),
    ...rangesOf(options.outboundRanges, family).map((range) => `${to(range)}-j ISTIO_REDIRECT`),
  ];
}

function groupRules({ ownerGroups, ownerGroupsExcluded }: InterceptOptions): readonly string[] {
  if (ownerGroups === "all") return ownerGroupsExcluded.map((group) => `-m owner --gid-owner ${group} -j RETURN`);
  return [`${ownerGroups.map((group) => `-m owner ! --gid-owner ${group} `).join("")}-j RETURN`];
}

const dnsRedirect = (options: InterceptOptions, family: Family): readonly string[] =>
  (["tcp", "udp"] as const).flatMap((protocol) =>
    dnsServers(options, family).map((server) => `${to(server)}-p ${protocol} -m ${protocol} --dport 53 -j REDIRECT --to-ports ${DNS_PORT}`),
  );

const ownerMatches = ({ proxyUsers, proxyGroups }: InterceptOptions): readonly string[] => [
  ...proxyUsers.map((user) => `-m owner --uid-owner ${user}`),
  ...proxyGroups.map((group) => `-m owner --gid-owner ${group}`),
];

const isNone = (selection: "all" | readonly unknown[]): boolean => selection !== "all" && selection.length === 0;
const loopback = ({ loopback4 }: InterceptOptions, family: Family): string => (family === 4 ? loopback4 : "::1/128");
const isLoopback = (range: Cidr): boolean => LOOPBACK.some((own) => cidrContains(own, { family: range.family, value: range.base }));
const hex = (mark: number): string => `0x${mark.toString(16)}`;
const to = (range: string): string => (range === "" ? "" : `-d ${range} `);
const from = (range: string): string => (range === "" ? "" : `-s ${range} `);

/** Ranges of one family as text; the empty one stands for all. */
function rangesOf(ranges: "all" | readonly Cidr[], family: Family): readonly string[] {
  if (ranges === "all") return [""];
  return ranges
    .filter((range) => range.family === family)
    .map((range) => (range.prefix === 0 ? "" : `${formatIp({ family, value: range.base })}/${range.prefix}`));
}
