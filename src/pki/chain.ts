import { type Certificate, readCertificates } from "./certificate.ts";

/** A way from a certificate to a root that is trusted. */
export interface Chain {
  /** The certificate itself first, then each issuer; the root is not among them unless the certificate is the root. */
  readonly path: readonly Certificate[];
  readonly root: Certificate;
}

const LONGEST_CHAIN = 8;

/** Finds a way from `leaf` to one of `roots` through `others`, checking each signature; undefined where there is none. Time is not looked at. */
export function chainTo(leaf: Certificate, others: readonly Certificate[], roots: readonly Certificate[]): Chain | undefined {
  const path = [leaf];
  for (let current = leaf; path.length <= LONGEST_CHAIN; ) {
    const root = roots.find((candidate) => candidate.raw.equals(current.raw) || isIssuedBy(current, candidate));
    if (root !== undefined) return { path, root };
    const issuer = others.find((candidate) => !path.includes(candidate) && isIssuedBy(current, candidate));
    if (issuer === undefined) return undefined;
    path.push(issuer);
    current = issuer;
  }
  return undefined;
}

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
