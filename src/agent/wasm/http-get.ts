import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { type Cidr, parseCidr } from "../../base/address.ts";
import { blockedUnder } from "../../base/blocked-address.ts";
import type { ProxyRules } from "../../base/environment-proxy.ts";
import { wayTo } from "../../base/way-to.ts";
import { request as requestPlain } from "../node-http.ts";

/** What limits a fetch, from its first request to its last byte. */
export interface FetchLimits {
  readonly signal: AbortSignal;
  readonly mostBytes: number;
  /** Hosts, with their ports, that need no good certificate and may be on this machine. `*` means all. */
  readonly insecureHosts: ReadonlySet<string>;
  /** Further ranges of addresses that are not called. */
  readonly blockedRanges: readonly Cidr[];
  readonly proxies: ProxyRules;
}

export interface Got {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

const MOST_REDIRECTS = 5;
const LOOPBACK = ["127.0.0.0/8", "::1/128"].flatMap((range) => parseCidr(range) ?? []);

/** Whether a host was named as one that need not prove who it is. */
export const isInsecure = ({ host }: URL, { insecureHosts }: FetchLimits): boolean => insecureHosts.has("*") || insecureHosts.has(host);

/**
 * Gets a document. Addresses of this machine, its links and metadata services are not called, wherever a name or a redirect leads; those of this
 * machine are where the host was named as insecure. Redirects are followed, as blobs of registries need it; credentials do not go along to another host, and from https
 * nothing leads to plain http.
 */
export async function httpGet(url: URL, headers: Readonly<Record<string, string>>, limits: FetchLimits): Promise<Got> {
  let place = url;
  let sent = headers;
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
    const got = await getOnce(place, sent, limits);
    const { location } = got.headers;
    if (got.status < 301 || got.status > 308 || location === undefined) return got;
    const next = URL.parse(location, place.href);
    if (next === null || (next.protocol !== "https:" && next.protocol !== place.protocol))
      throw new Error(`${place.origin} redirects to where nothing is fetched from`);
    if (next.host !== place.host) {
      const { authorization: _, ...rest } = sent;
      sent = rest;
    }
    place = next;
  }
  throw new Error(`${url.origin} redirects more than ${MOST_REDIRECTS} times`);
}

async function getOnce(url: URL, headers: Readonly<Record<string, string>>, limits: FetchLimits): Promise<Got> {
  const insecure = isInsecure(url, limits);
  const isBlocked = blockedUnder({ allowed: insecure ? LOOPBACK : [], blocked: limits.blockedRanges });
  const way = await wayTo(url, { proxies: limits.proxies, isBlocked });
  return new Promise((resolve, reject) => {
    const options = { headers, ...way, signal: limits.signal };
    const failed = (error: unknown): void => reject(limits.signal.aborted ? new Error(`${url.host} does not answer in time`) : error);
    const take = (response: IncomingMessage): void => void readAll(response, limits.mostBytes).then(resolve, failed);
    const sent =
      url.protocol === "https:"
        ? process.getBuiltinModule("node:https").request(url, { ...options, rejectUnauthorized: !insecure }, take)
        : requestPlain(url, options, take);
    sent.on("error", failed).end();
  });
}

function readAll(response: IncomingMessage, mostBytes: number): Promise<Got> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let size = 0;
    response.on("data", (part: Buffer) => {
      size += part.length;
      if (size > mostBytes) response.destroy(new Error(`it is larger than ${mostBytes} bytes`));
      else parts.push(part);
    });
    response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts) }));
    response.on("error", reject);
  });
}
