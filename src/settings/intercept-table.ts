/** A flag of `istio-agent iptables`. */
export interface InterceptFlag {
  readonly short?: string;
  readonly type?: "boolean";
  /** Further variables besides the one that is named like the flag; the earlier wins. */
  readonly env?: readonly string[];
  /** One that wins over all of them, as in Istio. */
  readonly envFirst?: string;
  readonly default?: string;
  readonly about: string;
}

/** Flags of Istio's `istio-iptables`. Each may also be a variable: `--istio-inbound-ports` is ISTIO_INBOUND_PORTS; the flag wins. */
export const INTERCEPT_FLAGS = {
  "envoy-port": { short: "p", default: "15001", about: "port that outbound connections are redirected to" },
  "inbound-capture-port": { short: "z", default: "15006", about: "port that inbound connections are redirected to" },
  "inbound-tunnel-port": { short: "e", default: "15008", about: "port of tunnelled connections, which are left as they are" },
  "proxy-uid": { short: "u", about: "users that Envoy and the agent run as, not intercepted [istio-proxy, else 1337]" },
  "proxy-gid": { short: "g", about: "groups of theirs [like -u]" },
  "istio-inbound-interception-mode": {
    short: "m",
    env: ["INBOUND_INTERCEPTION_MODE", "ISTIO_META_INTERCEPTION_MODE"],
    default: "REDIRECT",
    about: "REDIRECT, or TPROXY, which keeps the caller's address",
  },
  "istio-inbound-ports": { short: "b", env: ["INBOUND_PORTS_INCLUDE"], default: "*", about: "inbound ports; * all, empty none" },
  "istio-local-exclude-ports": {
    short: "d",
    env: ["INBOUND_PORTS_EXCLUDE"],
    default: "22,15020,15021,15090",
    about: "inbound ports left alone where all are intercepted",
  },
  "istio-exclude-interfaces": { short: "c", env: ["EXCLUDE_INTERFACES"], about: "interfaces left alone" },
  "istio-service-cidr": {
    short: "i",
    env: ["OUTBOUND_IP_RANGES_INCLUDE"],
    default: "*",
    about: "outbound ranges of addresses; * all, empty none",
  },
  "istio-service-exclude-cidr": { short: "x", env: ["OUTBOUND_IP_RANGES_EXCLUDE"], about: "outbound ranges left alone" },
  "istio-outbound-ports": { short: "q", env: ["OUTBOUND_PORTS_INCLUDE"], about: "outbound ports, whatever the address" },
  "istio-local-outbound-ports-exclude": { short: "o", env: ["OUTBOUND_PORTS_EXCLUDE"], about: "outbound ports left alone" },
  "kube-virt-interfaces": { short: "k", about: "interfaces of virtual machines, whose traffic counts as outbound" },
  "istio-inbound-tproxy-mark": { short: "t", env: ["INBOUND_TPROXY_MARK"], default: "1337", about: "mark of packets in TPROXY mode" },
  "istio-inbound-tproxy-route-table": { short: "r", default: "133", about: "routing table of TPROXY mode" },
  "redirect-dns": { type: "boolean", envFirst: "ISTIO_META_DNS_CAPTURE", about: "names are asked from the agent (15053)" },
  "capture-all-dns": { type: "boolean", about: "whatever the server, not only those of resolv.conf" },
  "drop-invalid": { type: "boolean", envFirst: "INVALID_DROP", about: "drop packets of no connection" },
  "dual-stack": { type: "boolean", envFirst: "ISTIO_DUAL_STACK", about: "IPv6, too [where the machine has nothing else]" },
  "network-namespace": { about: "file of the network namespace to work in" },
  "force-iptables-binary": { about: "nft or legacy [what works]" },
  "dry-run": { short: "n", type: "boolean", about: "print what would be given to iptables-restore" },
  "cleanup-only": { type: "boolean", about: "remove the rules" },
  "skip-rule-apply": { type: "boolean", about: "change nothing" },
  "run-validation": {
    type: "boolean",
    about: "exit with 126 if the rules are not in force, found out by traffic; as the proxy's user or root",
  },
  reconcile: { type: "boolean", about: "accepted: rules are always brought to what is wanted" },
  "force-apply": { type: "boolean", about: "accepted, as above" },
  "cni-mode": { type: "boolean", about: "accepted" },
  "iptables-probe-port": { default: "15002", about: "port that validation calls" },
  "probe-timeout": { default: "5s", about: "how long validation waits for rules" },
  log_output_level: { about: "accepted" },
  log_as_json: { type: "boolean", about: "accepted" },
  log_target: { about: "accepted" },
  log_caller: { about: "accepted" },
  log_stacktrace_level: { about: "accepted" },
  vklog: { about: "accepted" },
  "native-nftables": { type: "boolean", about: "accepted: what works here is used" },
} as const satisfies Record<string, InterceptFlag>;

/** Variables of interception that have no flag, in Istio either. */
export const INTERCEPT_VARIABLES = {
  ENVOY_USER: { default: "istio-proxy", about: "user that Envoy and the agent run as, where -u is not given" },
  ISTIO_OUTBOUND_IPV4_LOOPBACK_CIDR: { default: "127.0.0.1/32", about: "loopback addresses that are never intercepted" },
  ISTIO_OUTBOUND_OWNER_GROUPS: { default: "*", about: "groups whose programs are intercepted; * all" },
  ISTIO_OUTBOUND_OWNER_GROUPS_EXCLUDE: { default: "", about: "groups whose programs are not, where all are" },
} as const;

/** The variables that stand for a flag, the one that wins first. */
export const variablesOfFlag = (name: string, { env = [], envFirst }: InterceptFlag): readonly string[] => [
  ...(envFirst === undefined ? [] : [envFirst]),
  name.toUpperCase().replaceAll("-", "_"),
  ...env,
];
