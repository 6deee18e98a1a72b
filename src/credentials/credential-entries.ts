import type { Secret } from "../base/secret.ts";
import { keyPairFault, revocationFault, rootsFault } from "../pki/key-pair.ts";
import type { KeyPair, Looked, TrustedRoots } from "./credential-source.ts";

/** The named values that a credential is made from, wherever they are kept, and what to call their place in a sentence. */
export interface Entries {
  /** Keys of the configuration objects they are from; none for those kept elsewhere. */
  readonly objects: readonly string[];
  readonly title: string;
  /** Undefined where the entry is not there or empty, which is the same to Istio. */
  get(name: string): Secret | undefined;
}

/** Names of the entries that make up a certificate, in the order in which Istio looks for them: the generic ones go first. */
const PAIRS = [
  { chain: "cert", key: "key", staple: undefined },
  { chain: "tls.crt", key: "tls.key", staple: "tls.ocsp-staple" },
] as const;

const ROOTS = [
  { roots: "cacert", revoked: "crl" },
  { roots: "ca.crt", revoked: "ca.crl" },
] as const;

/** An entry that is there and holds something. */
export const filled = (value: Secret | undefined): Secret | undefined =>
  value === undefined || value.reveal().length === 0 ? undefined : value;

/** The certificate with its key among the entries; what is found has been checked. */
export function pairIn(entries: Entries): Looked<KeyPair> {
  for (const names of PAIRS) {
    const [chain, key] = [entries.get(names.chain), entries.get(names.key)];
    if (chain === undefined || key === undefined) continue;
    const staple = (names.staple && entries.get(names.staple))?.reveal();
    const fault = keyPairFault({ chain: textOf(chain), key: textOf(key), ...(staple !== undefined && { staple }) });
    if (fault !== undefined) return broken(entries, names[fault.part] ?? "", fault.message);
    const value: KeyPair = { chain: chain.reveal(), key, ...(staple !== undefined && { ocspStaple: staple }) };
    return { is: "found", value, objects: entries.objects };
  }
  return lacks(entries, "a certificate and its key (tls.crt and tls.key, or cert and key)");
}

/** The CA among the entries. */
export function rootsIn(entries: Entries): Looked<TrustedRoots> {
  for (const names of ROOTS) {
    const roots = entries.get(names.roots);
    if (roots === undefined) continue;
    const revoked = entries.get(names.revoked);
    const fault = rootsFault(textOf(roots));
    if (fault !== undefined) return broken(entries, names.roots, fault);
    const listFault = revoked && revocationFault(textOf(revoked));
    if (listFault !== undefined) return broken(entries, names.revoked, listFault);
    return {
      is: "found",
      value: { roots: roots.reveal(), ...(revoked !== undefined && { revoked: revoked.reveal() }) },
      objects: entries.objects,
    };
  }
  return lacks(entries, "the certificates of a CA (ca.crt or cacert)");
}

const textOf = (value: Secret): string => Buffer.from(value.reveal()).toString("latin1");

const broken = ({ title, objects }: Entries, field: string, fault: string): Looked<never> => ({
  is: "broken",
  reason: `${title}, ${field}: ${fault}`,
  objects,
});

const lacks = ({ title, objects }: Entries, what: string): Looked<never> => ({
  is: "broken",
  reason: `${title} does not hold ${what}`,
  objects,
});
