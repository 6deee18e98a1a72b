import { cidrContains, parseCidr, parseIp } from "../../src/base/address.ts";
import type {
  FilterChain,
  FilterChainMatch,
  ListenerFilterChainMatchPredicate,
} from "../../src/gen/envoy/config/listener/v3/listener_components_pb.js";
import type { Listener } from "../../src/gen/envoy/config/listener/v3/listener_pb.js";
import type { Call } from "./simulate.ts";

const CAPTURE_NAMES = { outbound: "virtualOutbound", inbound: "virtualInbound" } as const;

/** The listener that takes a connection. Captured traffic is handed on to the listener of its original destination where there is one. */
export function chooseListener(listeners: readonly Listener[], call: Call): Listener | undefined {
  const isBound = ({ bindToPort }: Listener): boolean => bindToPort !== false;
  if (call.direction === "bound") return atAddress(listeners.filter(isBound), call);
  const captureName = CAPTURE_NAMES[call.direction];
  const capture = listeners.find(({ name }) => name === captureName);
  if (capture === undefined) return atAddress(listeners.filter(isBound), call);
  return (
    (capture.useOriginalDst === true
      ? atAddress(
          listeners.filter((one) => one !== capture),
          call,
        )
      : undefined) ?? capture
  );
}

/** An exact address goes before the one that stands for all. */
function atAddress(listeners: readonly Listener[], { address, port }: Call): Listener | undefined {
  const at = (wanted: string): Listener | undefined =>
    listeners.find((one) =>
      [one.address, ...one.additionalAddresses.map((more) => more.address)].some(
        (bound) =>
          bound?.address.case === "socketAddress" &&
          bound.address.value.address === wanted &&
          bound.address.value.portSpecifier.value === port,
      ),
    );
  return at(address) ?? at(address.includes(":") ? "::" : "0.0.0.0") ?? at("::");
}

/** What the listener's inspectors find out about a connection. */
interface Seen {
  readonly port: number;
  readonly address: string;
  readonly sni: string;
  readonly transport: "tls" | "raw_buffer";
  readonly protocols: readonly string[];
}

/** Envoy narrows the chains down criterion by criterion, always to the most specific that fit, and never goes back. */
export function chooseChain(listener: Listener, call: Call): FilterChain | undefined {
  const seen = inspect(listener, call);
  let chains = listener.filterChains.map((chain) => ({ chain, match: chain.filterChainMatch }));
  for (const rank of CRITERIA) {
    const ranked = chains.map((one) => ({ ...one, rank: rank(one.match, seen) }));
    const best = Math.max(-1, ...ranked.map((one) => one.rank));
    chains = best < 0 ? [] : ranked.filter((one) => one.rank === best);
  }
  return chains[0]?.chain ?? listener.defaultFilterChain;
}

/** How specifically a match fits, by one criterion: 0 where it says nothing, below where it does not fit. */
type Criterion = (match: FilterChainMatch | undefined, seen: Seen) => number;

const NO = -1;

const CRITERIA: readonly Criterion[] = [
  (match, { port }) => (match?.destinationPort === undefined ? 0 : match.destinationPort === port ? 1 : NO),
  (match, { address }) =>
    match === undefined || match.prefixRanges.length === 0
      ? 0
      : Math.max(
          NO,
          ...match.prefixRanges.map(({ addressPrefix, prefixLen }) => prefixRank(`${addressPrefix}/${prefixLen ?? 0}`, address)),
        ),
  (match, { sni }) =>
    match === undefined || match.serverNames.length === 0 ? 0 : Math.max(NO, ...match.serverNames.map((name) => nameRank(name, sni))),
  (match, { transport }) => (match === undefined || match.transportProtocol === "" ? 0 : match.transportProtocol === transport ? 1 : NO),
  (match, { protocols }) =>
    match === undefined || match.applicationProtocols.length === 0
      ? 0
      : match.applicationProtocols.some((one) => protocols.includes(one))
        ? 1
        : NO,
];

function prefixRank(range: string, address: string): number {
  const [cidr, ip] = [parseCidr(range), parseIp(address)];
  return cidr !== undefined && ip !== undefined && cidrContains(cidr, ip) ? cidr.prefix + 1 : NO;
}

const EXACT = 1_000;

function nameRank(pattern: string, sni: string): number {
  if (pattern === sni) return EXACT;
  return pattern.startsWith("*.") && sni.endsWith(pattern.slice(1)) ? pattern.length : NO;
}

function inspect(listener: Listener, { address, port, tls, http }: Call): Seen {
  const has = (name: string): boolean =>
    listener.listenerFilters.some((filter) => filter.name === `envoy.filters.listener.${name}` && !holds(filter.filterDisabled, port));
  const sniffed = http !== undefined && has("http_inspector") ? [http.version ?? "http/1.1"] : [];
  if (tls === undefined || !has("tls_inspector"))
    return { port, address, sni: "", transport: "raw_buffer", protocols: tls === undefined ? sniffed : [] };
  return { port, address, sni: (tls.sni ?? "").toLowerCase(), transport: "tls", protocols: tls.alpn ?? [] };
}

function holds(predicate: ListenerFilterChainMatchPredicate | undefined, port: number): boolean {
  const rule = predicate?.rule;
  switch (rule?.case) {
    case "anyMatch":
      return rule.value;
    case "destinationPortRange":
      return rule.value.start <= port && port < rule.value.end;
    case "orMatch":
      return rule.value.rules.some((one) => holds(one, port));
    case "andMatch":
      return rule.value.rules.every((one) => holds(one, port));
    case "notMatch":
      return !holds(rule.value, port);
    default:
      return false;
  }
}
