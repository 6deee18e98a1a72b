import { Secret } from "../base/secret.ts";
import type { KubernetesSecret } from "../config/kinds/secret/secret.ts";
import { objectKey } from "../config/object.ts";
import type { CredentialRef, Looked } from "./credential-source.ts";
import type { StoredObjects } from "./stored-credentials.ts";

/** Where logins for registries of images come from: the content of Docker's `config.json`. Asked at each push, never by a query. */
export interface PullSecretSource {
  pullSecret(ref: CredentialRef): Looked<Secret<string>>;
}

/** Type and entry of such a Secret, as Kubernetes has them. */
const TYPE = "kubernetes.io/dockerconfigjson";
const ENTRY = ".dockerconfigjson";

/** Logins in Secret objects of the configuration. */
export function storedPullSecrets(objects: StoredObjects): PullSecretSource {
  return {
    pullSecret({ namespace, name }) {
      const key = objectKey({ kind: "Secret", namespace, name });
      const object = objects.get(key);
      if (object === undefined) return { is: "absent", reason: `there is no Secret ${namespace}/${name}`, objects: [] };
      const { type, data } = object.spec as KubernetesSecret;
      const entry = data[ENTRY];
      if (type !== TYPE || entry === undefined)
        return { is: "broken", reason: `Secret ${namespace}/${name} is not of type ${TYPE}, or has no entry ${ENTRY}`, objects: [key] };
      return { is: "found", value: new Secret(Buffer.from(entry.reveal()).toString("utf8")), objects: [key] };
    },
  };
}
