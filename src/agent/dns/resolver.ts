import {
  CLASS_IN,
  type DnsAnswer,
  type DnsQuery,
  type DnsRecord,
  RCODE,
  RECORD,
  readHeader,
  readQuery,
  udpLimit,
  writeAnswer,
  writeRefusal,
} from "./dns-message.ts";
import type { NameLookup } from "./name-table.ts";
import type { DnsTransport, Upstream } from "./upstream.ts";

/** What was asked and how it went, since the start. */
export interface DnsCounts {
  requests: number;
  forwarded: number;
  failed: number;
}

export interface ResolverOptions {
  /** Names of the mesh; undefined until they are known. */
  lookup(): NameLookup | undefined;
  readonly upstream: Upstream;
  readonly counts: DnsCounts;
  /** A number from 0 up to 1: where a list of addresses begins this time. */
  random(): number;
}

/** Answers a message; undefined where no answer is due. */
export type Resolve = (message: Uint8Array, transport: DnsTransport) => Promise<Buffer | undefined>;

/** Short enough that clients follow changes. */
const TTL_SECONDS = 30;
const QUERY_OPCODE = 0;
const LARGEST_TCP = 65_535;

/**
 * Names of the mesh are answered here: with addresses of the family that was asked for, or with none of them, which is not the same as not being
 * there. Everything else is the machine's servers' business. A server that does not know a name which we do know must not have the last word, and
 * neither must it while we do not know yet what the names are.
 */
export function createResolver({ lookup, upstream, counts, random }: ResolverOptions): Resolve {
  const answer = (query: DnsQuery, transport: DnsTransport, parts: Partial<DnsAnswer>): Buffer =>
    writeAnswer(
      query,
      { rcode: RCODE.NOERROR, records: [], authoritative: false, ...parts },
      transport === "udp" ? udpLimit(query) : LARGEST_TCP,
    );
  const forward = async (message: Uint8Array, query: DnsQuery, transport: DnsTransport): Promise<Buffer> => {
    counts.forwarded += 1;
    const theirs = await upstream.ask(message, transport);
    const names = lookup();
    if (theirs === undefined) {
      counts.failed += 1;
      return answer(query, transport, { rcode: RCODE.SERVFAIL });
    }
    if (readHeader(theirs)?.rcode === RCODE.NXDOMAIN) {
      if (names === undefined) return answer(query, transport, { rcode: RCODE.SERVFAIL });
      if (names.find(query.question.name) !== undefined) return answer(query, transport, { authoritative: true });
    }
    return transport === "udp" && theirs.length > udpLimit(query) ? answer(query, transport, { truncated: true }) : theirs;
  };
  return async (message, transport) => {
    const query = readQuery(message);
    if (query === undefined) {
      const header = readHeader(message);
      return header === undefined || header.isResponse ? undefined : writeRefusal(header.id, RCODE.FORMERR);
    }
    counts.requests += 1;
    if (query.opcode !== QUERY_OPCODE) return answer(query, transport, { rcode: RCODE.NOTIMP });
    const { name, type, class: number } = query.question;
    const found = number === CLASS_IN && (type === RECORD.A || type === RECORD.AAAA) ? lookup()?.find(name) : undefined;
    if (found === undefined) return forward(message, query, transport);
    const addresses = rotated(type === RECORD.A ? found.v4 : found.v6, random());
    const owner = found.alias ?? name;
    const records: readonly DnsRecord[] = addresses.map((address) => ({
      type: type === RECORD.A ? "A" : "AAAA",
      name: owner,
      ttl: TTL_SECONDS,
      address,
    }));
    const alias: readonly DnsRecord[] =
      found.alias === undefined || records.length === 0 ? [] : [{ type: "CNAME", name, ttl: TTL_SECONDS, target: found.alias }];
    return answer(query, transport, { records: [...alias, ...records], authoritative: true });
  };
}

/** Clients take the first; each time another one, so that they spread. */
function rotated<T>(list: readonly T[], random: number): readonly T[] {
  const start = Math.floor(random * list.length);
  return [...list.slice(start), ...list.slice(0, start)];
}
