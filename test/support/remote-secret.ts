import { dump } from "js-yaml";
import type { Cluster } from "../cluster/start-cluster.ts";

/** How another cluster is told of. */
export interface RemoteSecret {
  /** Its name. */
  readonly name: string;
  readonly cluster: Cluster;
  /** Who we are there: `{ token }`, say. */
  readonly user: unknown;
}

/** Tells a control plane in `istio-system` of one cluster about another, as `istioctl create-remote-secret` does. */
export const tellOfCluster = (primary: Cluster, { name, cluster, user }: RemoteSecret): Promise<unknown> =>
  primary.client.apply(
    dump({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: `remote-${name}`, namespace: "istio-system", labels: { "istio/multiCluster": "true" } },
      stringData: { [name]: kubeconfigOf(cluster, user) },
    }),
  );

const kubeconfigOf = ({ url, ca }: Cluster, user: unknown): string =>
  dump({
    "current-context": "it",
    clusters: [{ name: "it", cluster: { server: url, "certificate-authority-data": Buffer.from(ca).toString("base64") } }],
    users: [{ name: "it", user }],
    contexts: [{ name: "it", context: { cluster: "it", user: "it" } }],
  });
