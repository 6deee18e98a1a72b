import { isWildcardHost, matchesHost } from "../../../base/hostname.ts";

/** One host, written backwards: what a wildcard takes then starts with it. */
interface Reversed {
  readonly index: number;
  readonly host: string;
  readonly key: string;
}

/**
 * Finds hosts that another one of the list takes too, as index of the host and of the other. Sorted backwards, a wildcard stands right before
 * all it takes, so long lists cost no more than sorting them.
 */
export function overlappingHosts(hosts: readonly string[]): ReadonlyMap<number, number> {
  const found = new Map<number, number>();
  const wildcards: Reversed[] = [];
  let previous: Reversed | undefined;
  for (const entry of hosts.map(reverse).sort(byKey)) {
    while (wildcards.length > 0 && !entry.key.startsWith(wildcards.at(-1)?.key ?? "")) wildcards.pop();
    const wider = previous?.host === entry.host ? previous : wildcards.findLast((one) => matchesHost(one.host, entry.host));
    if (wider !== undefined) found.set(Math.max(entry.index, wider.index), Math.min(entry.index, wider.index));
    if (isWildcardHost(entry.host)) wildcards.push(entry);
    previous = entry;
  }
  return found;
}

function reverse(text: string, index: number): Reversed {
  const host = text.toLowerCase();
  const fixed = isWildcardHost(host) ? host.slice(1) : host;
  return { index, host, key: [...fixed].reverse().join("") };
}

const byKey = (a: Reversed, b: Reversed): number =>
  a.key < b.key ? -1 : a.key > b.key ? 1 : Number(isWildcardHost(b.host)) - Number(isWildcardHost(a.host));
