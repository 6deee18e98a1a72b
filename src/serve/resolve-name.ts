import { promises as dns } from "node:dns";
import type { ResolvedName } from "./gateway-names.ts";

/** Where only the system knows a name (its hosts file), nothing says for how long. */
const SYSTEM_TTL_MS = 30_000;

/** Addresses of both families by DNS, with the shortest of their lives; where DNS knows none, what the system makes of the name. */
export async function resolveName(name: string): Promise<ResolvedName> {
  const resolver = new dns.Resolver({ timeout: 5_000, tries: 2 });
  const answers = await Promise.allSettled([resolver.resolve4(name, { ttl: true }), resolver.resolve6(name, { ttl: true })]);
  const records = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
  if (records.length > 0) {
    return { addresses: records.map(({ address }) => address), ttlMs: Math.min(...records.map(({ ttl }) => ttl)) * 1_000 };
  }
  const known = await dns.lookup(name, { all: true });
  return { addresses: known.map(({ address }) => address), ttlMs: SYSTEM_TTL_MS };
}
