import { Secret } from "../base/secret.ts";
import type { ConfigMap } from "../config/kinds/config-map/config-map.ts";
import type { KubernetesSecret } from "../config/kinds/secret/secret.ts";
import { type ConfigObject, objectKey } from "../config/object.ts";
import { type Entries, filled, pairIn, rootsIn } from "./credential-entries.ts";
import {
  type CredentialRef,
  type CredentialSource,
  type KeyPair,
  type Looked,
  type TrustedRoots,
  withoutSuffix,
} from "./credential-source.ts";

/** The objects of the configuration that are in force, by key: the store. */
export interface StoredObjects {
  get(key: string): ConfigObject | undefined;
}

/** Credentials in Secret and ConfigMap objects of the configuration, under the names Istio's documentation gives ("Secure Gateways"). */
export function storedCredentials(objects: StoredObjects): CredentialSource {
  // Checking a key takes time, and a thousand gateways may name one Secret: it is done once per version of an object.
  const pairs = new WeakMap<ConfigObject, Looked<KeyPair>>();
  const roots = new WeakMap<ConfigObject, Looked<TrustedRoots>>();
  const at = (kind: string, { namespace, name, cluster = "" }: CredentialRef): ConfigObject | undefined => {
    // As in Istio, ConfigMaps are those of the own cluster only.
    const there = cluster !== "" && kind === "Secret" ? objects.get(objectKey({ kind, namespace, name, cluster })) : undefined;
    return there ?? objects.get(objectKey({ kind, namespace, name }));
  };
  return {
    keyPair(ref) {
      const object = at("Secret", ref);
      return object === undefined ? absent("Secret", ref) : once(pairs, object, pairIn);
    },
    roots({ in: kind, name, ...place }) {
      const plain = { ...place, name: withoutSuffix(name) };
      const object = (kind === "Secret" ? at(kind, { ...place, name }) : undefined) ?? at(kind, plain);
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
  return { objects: [objectKey(object)], title: `${kind} ${namespace}/${name}`, get: (entry) => filled(contentOf(entry)) };
}

const absent = (kind: string, { namespace, name }: CredentialRef): Looked<never> => ({
  is: "absent",
  reason: `there is no valid ${kind} ${namespace}/${name}`,
  objects: [],
});
