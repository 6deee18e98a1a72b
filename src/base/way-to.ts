import { lookup } from "node:dns/promises";
import type { Agent } from "node:http";
import { isIP, type LookupFunction } from "node:net";
import { type ProxyRules, proxyFor } from "./environment-proxy.ts";
import { blockedPlace, guardedLookup } from "./guarded-lookup.ts";

/** Options of a request that lead it to its place. */
export interface Way {
  readonly agent: Agent | false;
  readonly lookup?: LookupFunction;
}

export interface WayRules {
  readonly proxies: ProxyRules;
  /** Addresses that are not called. */
  readonly isBlocked: (address: string) => boolean;
}

/**
 * How a place is reached: at an address that may be called, judged in the look-up that the connection itself uses; or through the proxy of the
 * environment, which then finds the address. A name that stands for blocked addresses here is not asked for there either. Rejects with a sentence.
 */
export async function wayTo(url: URL, { proxies, isBlocked }: WayRules): Promise<Way> {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  if (isIP(host) !== 0 && isBlocked(host)) throw blockedPlace(url.host);
  const proxy = proxyFor(url, proxies);
  if (proxy === undefined) return { agent: false, lookup: guardedLookup(isBlocked) };
  const known = await lookup(host, { all: true }).catch(() => []);
  if (known.length > 0 && known.every(({ address }) => isBlocked(address))) throw blockedPlace(url.host);
  const secure = url.protocol === "https:";
  const { Agent } = process.getBuiltinModule(secure ? "node:https" : "node:http");
  return { agent: new Agent({ keepAlive: false, proxyEnv: secure ? { HTTPS_PROXY: proxy.href } : { HTTP_PROXY: proxy.href } }) };
}
