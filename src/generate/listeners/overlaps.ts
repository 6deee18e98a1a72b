import { canonicalCidr } from "../../base/address.ts";
import type { FilterChainInput } from "../../envoy/listener/filter-chain.ts";
import { canonical } from "./traits.ts";

/**
 * Makes chains that Envoy can tell apart: it refuses a whole listener where two chains claim the same server name, in any case, or address range. The
 * earlier chain keeps what both claim, and one that has nothing left is dropped.
 */
export function withoutOverlaps(chains: readonly FilterChainInput[]): readonly FilterChainInput[] {
  const taken = new Set<string>();
  return chains
    .flatMap(withMatchableNames)
    .map(withDistinctRanges)
    .flatMap((chain) => {
      const { serverNames, destinations, ...rest } = chain.match;
      const claim = (name: string | undefined, range: string | undefined): string => canonical([rest, name?.toLowerCase(), range]);
      const names = serverNames ?? [undefined];
      const ranges = destinations ?? [undefined];
      const freeNames = names.filter((name) => ranges.every((range) => !taken.has(claim(name, range))));
      const freeRanges = freeNames.length > 0 ? ranges : ranges.filter((range) => names.every((name) => !taken.has(claim(name, range))));
      if (freeRanges.length === 0) return [];
      const leftNames = freeNames.length > 0 ? freeNames : names;
      for (const name of leftNames) for (const range of freeRanges) taken.add(claim(name, range));
      if (leftNames.length === names.length && freeRanges.length === ranges.length) return [chain];
      const match = {
        ...rest,
        ...(serverNames !== undefined && { serverNames: texts(leftNames) }),
        ...(destinations !== undefined && { destinations: texts(freeRanges) }),
      };
      return [{ ...chain, match }];
    });
}

/**
 * Envoy refuses a server name that it is given twice or of whose first label `*` is a part (`*-a.test`). Such a name takes nothing, and a chain that has no
 * other is dropped; `*` alone is no name but all of them.
 */
function withMatchableNames(chain: FilterChainInput): readonly FilterChainInput[] {
  const { serverNames, ...rest } = chain.match;
  if (serverNames === undefined) return [chain];
  if (serverNames.includes("*")) return [{ ...chain, match: rest }];
  const seen = new Set<string>();
  const names = serverNames.filter((name) => {
    const isNew = !seen.has(name.toLowerCase());
    seen.add(name.toLowerCase());
    return isNew && (!name.startsWith("*") || name.startsWith("*."));
  });
  if (names.length === serverNames.length) return [chain];
  return names.length === 0 ? [] : [{ ...chain, match: { ...rest, serverNames: names } }];
}

/** Bits after the prefix do not count: `10.1.0.0/8` and `10.0.0.0/8` are one range, and Envoy refuses it when it is given twice. */
function withDistinctRanges(chain: FilterChainInput): FilterChainInput {
  const { destinations } = chain.match;
  if (destinations === undefined) return chain;
  const ranges = [...new Set(destinations.map(canonicalCidr))];
  const isSame = ranges.length === destinations.length && ranges.every((range, index) => range === destinations[index]);
  return isSame ? chain : { ...chain, match: { ...chain.match, destinations: ranges } };
}

const texts = (values: readonly (string | undefined)[]): readonly string[] => values.filter((value) => value !== undefined);
