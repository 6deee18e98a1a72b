/** Host names as the Istio API writes them: exact (`a.example.com`), wildcard (`*.example.com`) or everything (`*`). */

/** `*` or `*.example.com`: stands for names, and is none itself. */
export const isWildcardHost = (host: string): boolean => host.startsWith("*");

/**
 * Whether every name that `host` stands for is taken by `pattern`. `host` may be a wildcard itself: `*.example.com` takes
 * `*.a.example.com`, not the other way round. A leading `*` stands for one or more labels, so `*.example.com` leaves `example.com`.
 */
export function matchesHost(pattern: string, host: string): boolean {
  if (!isWildcardHost(pattern)) return pattern === host;
  const suffix = pattern.slice(1);
  if (!isWildcardHost(host)) return host.length > suffix.length && host.endsWith(suffix);
  return host.length >= pattern.length && host.slice(1).endsWith(suffix);
}

/** Whether some name is taken by both hosts. */
export const hostsOverlap = (a: string, b: string): boolean => matchesHost(a, b) || matchesHost(b, a);

/**
 * Orders hosts from most to least specific: exact names before wildcards, longer names before shorter ones, then alphabetically.
 * The first host of a sorted list that matches is the one Istio would choose.
 */
export function compareSpecificity(a: string, b: string): number {
  const wildcards = Number(isWildcardHost(a)) - Number(isWildcardHost(b));
  if (wildcards !== 0) return wildcards;
  if (a.length !== b.length) return b.length - a.length;
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The most specific of `patterns` that takes `host`, or undefined. */
export function mostSpecificMatch(host: string, patterns: Iterable<string>): string | undefined {
  let best: string | undefined;
  for (const pattern of patterns) {
    if (matchesHost(pattern, host) && (best === undefined || compareSpecificity(pattern, best) < 0)) best = pattern;
  }
  return best;
}

/** Host name of a Kubernetes Service. */
export const serviceHost = (name: string, namespace: string, domain: string): string => `${name}.${namespace}.svc.${domain}`;

/** The Service a host names, where it has the form `name.namespace.svc.domain`. */
export function parseServiceHost(host: string, domain: string): { readonly name: string; readonly namespace: string } | undefined {
  const suffix = `.svc.${domain}`;
  if (!host.endsWith(suffix)) return undefined;
  const [name, namespace, ...rest] = host.slice(0, -suffix.length).split(".");
  return name === undefined || name === "" || name === "*" || namespace === undefined || namespace === "" || rest.length > 0
    ? undefined
    : { name, namespace };
}

/**
 * Expands a host as written in a VirtualService, DestinationRule or Gateway: a name without dots belongs to the namespace of the object
 * that names it (`reviews` in `shop` is `reviews.shop.svc.cluster.local`). Qualified names, wildcards and addresses stay as they are.
 */
export function resolveShortName(host: string, namespace: string, domain: string): string {
  return host === "" || host.includes(".") || host.includes(":") || isWildcardHost(host) ? host : serviceHost(host, namespace, domain);
}
