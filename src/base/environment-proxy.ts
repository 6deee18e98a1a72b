import { cidrContains, parseCidr, parseIp } from "./address.ts";

/** The variables HTTP_PROXY, HTTPS_PROXY and NO_PROXY, as programs in Go understand them. */
export interface ProxyRules {
  readonly httpProxy: string;
  readonly httpsProxy: string;
  readonly noProxy: string;
}

/** Everything is called directly. */
export const NO_PROXIES: ProxyRules = { httpProxy: "", httpsProxy: "", noProxy: "" };

/**
 * The proxy that a request goes through; undefined where it goes directly. What is on this machine is never asked for elsewhere. Throws where a proxy
 * is none that can be used: going around it would be a breach of what the operator wanted.
 */
export function proxyFor(url: URL, rules: ProxyRules): URL | undefined {
  const text = url.protocol === "https:" ? rules.httpsProxy : rules.httpProxy;
  if (text === "" || isThisMachine(url.hostname) || isExempt(url, rules.noProxy)) return undefined;
  const proxy = URL.parse(text.includes("://") ? text : `http://${text}`);
  if (proxy === null || !["http:", "https:"].includes(proxy.protocol))
    throw new Error(`${url.protocol === "https:" ? "HTTPS" : "HTTP"}_PROXY is not the URL of an HTTP proxy`);
  return proxy;
}

const LOOPBACK = ["127.0.0.0/8", "::1/128"].flatMap((range) => parseCidr(range) ?? []);
const bare = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, "$1");

function isThisMachine(hostname: string): boolean {
  const ip = parseIp(bare(hostname));
  return hostname === "localhost" || (ip !== undefined && LOOPBACK.some((range) => cidrContains(range, ip)));
}

/** A list of `*`, addresses, ranges, and names, which stand for what is below them too (with a dot before them, for that alone); each but a range with a port, if need be. */
function isExempt(url: URL, list: string): boolean {
  const host = bare(url.hostname).toLowerCase();
  const port = url.port || (url.protocol === "https:" ? "443" : "80");
  return list.split(",").some((entry) => matches(entry.trim().toLowerCase(), host, port));
}

const WITH_PORT = /^(\[[^\]]+\]|[^:]+):(\d+)$/;

function matches(entry: string, host: string, port: string): boolean {
  if (entry === "") return false;
  if (entry === "*") return true;
  const ip = parseIp(host);
  const range = entry.includes("/") ? parseCidr(entry) : undefined;
  if (range !== undefined) return ip !== undefined && cidrContains(range, ip);
  const [, before = entry, wantedPort = port] = WITH_PORT.exec(entry) ?? [];
  const name = bare(before).replace(/^\*\./, ".");
  if (wantedPort !== port) return false;
  if (ip !== undefined || parseIp(name) !== undefined) return name === host;
  return name.startsWith(".") ? host.endsWith(name) : host === name || host.endsWith(`.${name}`);
}
