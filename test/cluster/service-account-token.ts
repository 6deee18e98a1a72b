import type { KubeClient } from "./kube-client.ts";

/** What a token is to be good for. */
export interface TokenOptions {
  readonly audiences?: readonly string[];
  /** At least 600. */
  readonly expirationSeconds?: number;
  /** The token ends with this pod. */
  readonly boundPod?: { readonly name: string; readonly uid: string };
}

/** A bound token of a service account (`namespace/name`), by the TokenRequest API. */
export async function requestToken({ api }: KubeClient, account: string, options: TokenOptions): Promise<string> {
  const { audiences, expirationSeconds = 3600, boundPod } = options;
  const [namespace = "", name = ""] = account.split("/");
  const { body } = await api.call({
    method: "POST",
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
    body: {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: {
        expirationSeconds,
        ...(audiences && { audiences }),
        ...(boundPod && { boundObjectRef: { apiVersion: "v1", kind: "Pod", name: boundPod.name, uid: boundPod.uid } }),
      },
    },
  });
  return (body as { readonly status: { readonly token: string } }).status.token;
}
