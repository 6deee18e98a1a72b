import type { FilterChainInput } from "../../envoy/listener/filter-chain.ts";
import { canonical } from "./traits.ts";

/**
 * Makes chains that Envoy can tell apart: it refuses a whole listener where two chains claim the same server name, in any case, or address range. The
 * earlier chain keeps what both claim, and one that has nothing left is dropped.
 */
export function withoutOverlaps(chains: readonly FilterChainInput[]): readonly FilterChainInput[] {
  const taken = new Set<string>();
  return chains.flatMap((chain) => {
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

const texts = (values: readonly (string | undefined)[]): readonly string[] => values.filter((value) => value !== undefined);
