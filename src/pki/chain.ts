import { type Certificate, readCertificates } from "./certificate.ts";

/** A way from a certificate to a root that is trusted. */
export interface Chain {
  /** The certificate itself first, then each issuer; the root is not among them unless the certificate is the root. */
  readonly path: readonly Certificate[];
  readonly root: Certificate;
}

const LONGEST_CHAIN = 8;

/**
 * Finds a way from `leaf` to one of `roots` through `others`, checking each signature; undefined where there is none. Of several the one that lasts longest:
 * where a CA was renewed with its old key, what it signed leads to either. Time is not looked at.
 */
export function chainTo(leaf: Certificate, others: readonly Certificate[], roots: readonly Certificate[]): Chain | undefined {
  const ways: Way[] = [{ path: [leaf], current: leaf, endsAt: leaf.notAfter }];
  const reached = new Set([leaf]);
  for (let way = takeLongest(ways); way !== undefined; way = takeLongest(ways)) {
    const { path, current, root, endsAt } = way;
    if (root !== undefined) return { path, root };
    for (const one of roots) if (isSame(one, current)) return { path, root: one };
    for (const one of roots) if (isIssuedBy(current, one)) ways.push({ path, current, root: one, endsAt: Math.min(endsAt, one.notAfter) });
    if (path.length >= LONGEST_CHAIN) continue;
    for (const one of others) {
      if (reached.has(one) || !isIssuedBy(current, one)) continue;
      reached.add(one);
      ways.push({ path: [...path, one], current: one, endsAt: Math.min(endsAt, one.notAfter) });
    }
  }
  return undefined;
}

/** A chain that is looked for, with its root where it has been found. */
interface Way {
  readonly path: readonly Certificate[];
  /** The last of them. */
  readonly current: Certificate;
  readonly root?: Certificate;
  readonly endsAt: number;
}

/** The one that lasts longest, the first of several. */
function takeLongest(ways: Way[]): Way | undefined {
  const longest = ways.reduce<Way | undefined>((best, way) => (best === undefined || way.endsAt > best.endsAt ? way : best), undefined);
  if (longest !== undefined) ways.splice(ways.indexOf(longest), 1);
  return longest;
}

const isSame = (a: Certificate, b: Certificate): boolean => a.raw.equals(b.raw);

/** When the first certificate of a chain, the root among them, ends. */
export const chainEnd = ({ path, root }: Chain): number => Math.min(root.notAfter, ...path.map(({ notAfter }) => notAfter));

const isIssuedBy = (certificate: Certificate, issuer: Certificate): boolean =>
  issuer.isCa && certificate.x509.checkIssued(issuer.x509) && certificate.x509.verify(issuer.x509.publicKey);

/** Several certificates as one PEM text. */
export const bundlePem = (certificates: readonly Certificate[]): string => certificates.map(({ pem }) => pem).join("");

/** Several bundles as one, each certificate once; what cannot be read is left out. */
export function mergeBundles(pems: readonly string[]): string {
  const found = new Map<string, Certificate>();
  for (const pem of pems) {
    const read = readCertificates(pem);
    for (const one of typeof read === "string" ? [] : read) found.set(one.raw.toString("latin1"), one);
  }
  return bundlePem([...found.values()]);
}
