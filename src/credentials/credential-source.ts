import type { Secret } from "../base/secret.ts";

/** Where a credential lies. */
export interface CredentialRef {
  readonly namespace: string;
  readonly name: string;
  /** The cluster that whoever asks is in: what that has goes before what this control plane's own cluster has. */
  readonly cluster?: string;
}

/** A certificate with all that is needed to show it. */
export interface KeyPair {
  /** PEM, the certificate first. */
  readonly chain: Uint8Array;
  readonly key: Secret;
  /** DER, as the responder gave it. */
  readonly ocspStaple?: Uint8Array;
}

/** What certificates of others are checked against, PEM. */
export interface TrustedRoots {
  readonly roots: Uint8Array;
  readonly revoked?: Uint8Array;
}

/**
 * What became of a look-up. `absent`: there is no such credential. `broken`: there is, and it cannot be used; sentences name the object and
 * the field, never content. `objects` are keys of the configuration objects it was made from.
 */
export type Looked<T> =
  | { readonly is: "found"; readonly value: T; readonly objects: readonly string[] }
  | { readonly is: "absent" | "broken"; readonly reason: string; readonly objects: readonly string[] };

/**
 * Where certificates and keys come from that users name by `credentialName`. What is found has been checked: a proxy will take it. Asked again at
 * every push, and never by a query: secrets stay out of the engine. An answer is the same object as long as the credential did not change, so
 * that what is made of it can be kept with it. A source that has to ask elsewhere (a vault, say) answers from what it has, and has a push made
 * when it learns more.
 */
export interface CredentialSource {
  keyPair(ref: CredentialRef): Looked<KeyPair>;
  /** `in`: the kind of object that holds it. */
  roots(ref: CredentialRef & { readonly in: "Secret" | "ConfigMap" }): Looked<TrustedRoots>;
}

/** Ending of a name that means the CA of a credential and not its certificate. */
export const ROOTS_SUFFIX = "-cacert";

/** The credential that the CA of this name belongs to. */
export const withoutSuffix = (name: string): string => (name.endsWith(ROOTS_SUFFIX) ? name.slice(0, -ROOTS_SUFFIX.length) : name);
