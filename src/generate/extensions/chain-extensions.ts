import type { ExtensionInput, PhasedExtensions } from "../../envoy/filters/extension-filter.ts";
import { WorkloadMode } from "../../gen/istio/type/v1beta1/selector_pb.js";
import type { ExtensionRule } from "./extension-rule.ts";

/** Extensions of the chains at one port. Absent parts have none. */
export interface ChainExtensions {
  readonly http?: PhasedExtensions;
  readonly network?: PhasedExtensions;
}

/** Rules that are for a side at all: an outbound listener and a gateway are clients of what is behind them. */
export function rulesForSide(rules: readonly ExtensionRule[], side: "client" | "server" | "gateway"): readonly ExtensionRule[] {
  const mode = side === "server" ? WorkloadMode.SERVER : WorkloadMode.CLIENT;
  const takes = (one: WorkloadMode): boolean => one === WorkloadMode.UNDEFINED || one === WorkloadMode.CLIENT_AND_SERVER || one === mode;
  return rules.flatMap((rule) => {
    if (rule.matches.length === 0) return [rule];
    const matches = rule.matches.filter((match) => takes(match.mode));
    return matches.length === 0 ? [] : [{ ...rule, matches }];
  });
}

/** The extensions at a port, in order: by phase, then by priority, then the oldest first. */
export function extensionsAt(rules: readonly ExtensionRule[], port: number): ChainExtensions {
  const here = rules.filter(
    ({ matches }) => matches.length === 0 || matches.some(({ ports }) => ports.length === 0 || ports.includes(port)),
  );
  if (here.length === 0) return {};
  const http = phased(here.filter(({ filter }) => filter === "http"));
  const network = phased(here.filter(({ filter }) => filter === "network"));
  return { ...(http !== undefined && { http }), ...(network !== undefined && { network }) };
}

function phased(rules: readonly ExtensionRule[]): PhasedExtensions | undefined {
  if (rules.length === 0) return undefined;
  const sorted = rules.toSorted((a, b) => rank(b) - rank(a));
  const of = (phase: ExtensionRule["phase"]): readonly ExtensionInput[] =>
    sorted.filter((rule) => rule.phase === phase).map(({ name, code }) => ({ name, code }));
  return { authn: of("authn"), authz: of("authz"), rest: [...of("stats"), ...of("none")] };
}

const rank = ({ priority }: ExtensionRule): number => priority ?? Number.MIN_SAFE_INTEGER;
