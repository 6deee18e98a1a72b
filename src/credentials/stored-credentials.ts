import { Secret } from "../base/secret.ts";
import type { ConfigMap } from "../config/kinds/config-map/config-map.ts";
import type { KubernetesSecret } from "../config/kinds/secret/secret.ts";
import { type ConfigObject, objectKey } from "../config/object.ts";
import { keyPairFault, revocationFault, rootsFault } from "../pki/key-pair.ts";
import {
  type CredentialRef,
  type CredentialSource,
  type KeyPair,
  type Looked,
  ROOTS_SUFFIX,
  type TrustedRoots,
} from "./credential-source.ts";

/** The entries of an object, and what to call it in a sentence. */
interface Entries {
  readonly object: string;
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

/** The objects of the configuration that are in force, by key: the store. */
export interface StoredObjects {
  get(key: string): ConfigObject | undefined;
}

/** Credentials in Secret and ConfigMap objects of the configuration, under the names Istio's documentation gives ("Secure Gateways"). */
export function storedCredentials(objects: StoredObjects): CredentialSource {
  // Checking a key takes time, and a thousand gateways may name one Secret: it is done once per version of an object.
  const pairs = new WeakMap<ConfigObject, Looked<KeyPair>>();
  const roots = new WeakMap<ConfigObject, Looked<TrustedRoots>>();
  const at = (kind: string, { namespace, name }: CredentialRef): ConfigObject | undefined =>
    objects.get(objectKey({ kind, namespace, name }));
  return {
    keyPair(ref) {
      const object = at("Secret", ref);
      return object === undefined ? absent("Secret", ref) : once(pairs, object, pairIn);
    },
    roots({ in: kind, namespace, name }) {
      const plain = { namespace, name: withoutSuffix(name) };
      const object = (kind === "Secret" ? at(kind, { namespace, name }) : undefined) ?? at(kind, plain);
      return object === undefined ? absent(kind, plain) : once(roots, object, rootsIn);
    },
  };
}

function once<T>(known: WeakMap<ConfigObject, Looked<T>>, object: ConfigObject, read: (entries: Entries) => Looked<T>): Looked<T> {
  const found = known.get(object) ?? read(entriesOf(object));
  known.set(object, found);
  return found;
}

function entriesOf(object: ConfigObject): Entries {
  const { kind, namespace, name, spec } = object;
  const contentOf = (entry: string): Secret | undefined =>
    kind === "Secret" ? (spec as KubernetesSecret).data[entry] : new Secret(Buffer.from((spec as ConfigMap).data[entry] ?? ""));
  return { object: objectKey(object), title: `${kind} ${namespace}/${name}`, get: (entry) => filled(contentOf(entry)) };
}

const withoutSuffix = (name: string): string => (name.endsWith(ROOTS_SUFFIX) ? name.slice(0, -ROOTS_SUFFIX.length) : name);

const filled = (value: Secret | undefined): Secret | undefined => (value === undefined || value.reveal().length === 0 ? undefined : value);

function pairIn(entries: Entries): Looked<KeyPair> {
  for (const names of PAIRS) {
    const [chain, key] = [entries.get(names.chain), entries.get(names.key)];
    if (chain === undefined || key === undefined) continue;
    const staple = (names.staple && entries.get(names.staple))?.reveal();
    const fault = keyPairFault({ chain: textOf(chain), key: textOf(key), ...(staple !== undefined && { staple }) });
    if (fault !== undefined) return broken(entries, names[fault.part] ?? "", fault.message);
    const value: KeyPair = { chain: chain.reveal(), key, ...(staple !== undefined && { ocspStaple: staple }) };
    return { is: "found", value, objects: [entries.object] };
  }
  return lacks(entries, "a certificate and its key (tls.crt and tls.key, or cert and key)");
}

function rootsIn(entries: Entries): Looked<TrustedRoots> {
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
      objects: [entries.object],
    };
  }
  return lacks(entries, "the certificates of a CA (ca.crt or cacert)");
}

const textOf = (value: Secret): string => Buffer.from(value.reveal()).toString("latin1");

const absent = (kind: string, { namespace, name }: CredentialRef): Looked<never> => ({
  is: "absent",
  reason: `there is no valid ${kind} ${namespace}/${name}`,
  objects: [],
});

const broken = ({ title, object }: Entries, field: string, fault: string): Looked<never> => ({
  is: "broken",
  reason: `${title}, ${field}: ${fault}`,
  objects: [object],
});

const lacks = ({ title, object }: Entries, what: string): Looked<never> => ({
  is: "broken",
  reason: `${title} does not hold ${what}`,
  objects: [object],
});
