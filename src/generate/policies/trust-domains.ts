/** In policies `cluster.local` means whatever trust domain the mesh has, as Istio's guide to migrating trust domains says. */
const LOCAL = "cluster.local";

/**
 * Peer identities with each alias of the mesh's trust domain in place of the one that was written, so that policies outlive a change of
 * trust domain. `trustDomains` has the mesh's own first. Identities of other domains, and those that leave theirs open, stay as they are.
 */
export const withTrustDomainAliases = (identities: readonly string[], trustDomains: readonly string[]): readonly string[] =>
  identities.flatMap((identity) => aliasesOf(identity, trustDomains));

/** Trust domains with all of the mesh's in place of each that is one of them, each once. Patterns stay as they are. */
export const expandedTrustDomains = (domains: readonly string[], trustDomains: readonly string[]): readonly string[] => [
  ...new Set(domains.flatMap((domain) => (trustDomains.includes(domain) ? trustDomains : [domain]))),
];

function aliasesOf(identity: string, trustDomains: readonly string[]): readonly string[] {
  const [domain = "", ...rest] = identity.split("/");
  // `<domain>/ns/<namespace>/sa/<account>`: anything else is not an identity whose domain could be told.
  if (rest.length !== 4 || domain === "*" || trustDomains.length === 0) return [identity];
  if (domain !== LOCAL && !trustDomains.some((own) => takes(domain, own) || takes(own, domain))) return [identity];
  const path = rest.join("/");
  return [...new Set(trustDomains.map((own) => (takesEnd(domain, own) ? identity : `${own}/${path}`)))];
}

/** Domains are written whole, as `*suffix` or as `prefix*`, by policies and in the mesh's list of aliases. */
const takes = (pattern: string, domain: string): boolean =>
  pattern === domain || takesEnd(pattern, domain) || (pattern.endsWith("*") && domain.startsWith(pattern.slice(0, -1)));

const takesEnd = (pattern: string, domain: string): boolean => pattern.startsWith("*") && domain.endsWith(pattern.slice(1));
