import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Cluster, clusterImpossible, startCluster } from "../cluster/start-cluster.ts";
import { createCertificateIssuer, tlsSecret } from "../support/certificates.ts";
import { addNamespaces, clusterRead, secretReaderYaml } from "../support/cluster-objects.ts";
import { startIstiod } from "../support/istiod.ts";
import { eventually } from "../support/wait.ts";
import { watchSecret } from "../support/watched-secret.ts";

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

const NAME = "kubernetes://cert";
/** A minute, and what a busy machine takes. */
const ASKED_ANEW_MS = 120_000;

describe.skipIf(reason !== undefined)("credentials in a cluster", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ controllerManager: false });
    await addNamespaces(cluster, "shop", "istio-system");
    await cluster.client.apply(`
{apiVersion: v1, kind: ServiceAccount, metadata: {name: edge, namespace: shop}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: other, namespace: shop}}
${secretReaderYaml("edge")}`);
  });
  afterAll(() => cluster?.stop());

  const tokenOf = (account: string): Promise<string> => cluster.createServiceAccountToken("shop", account, { audiences: ["istio-ca"] });

  it("go to gateways whose service account may list secrets there, and are never taken from them while that is found out", async () => {
    const ca = await createCertificateIssuer("servers");
    await cluster.client.apply(tlsSecret("shop/cert", await ca.issue("DNS:a.example.com")));
    const istiod = await startIstiod({ env: { KUBECONFIG: cluster.kubeconfig } });
    await clusterRead(istiod);
    const edge = await watchSecret(istiod, { account: "edge", token: await tokenOf("edge"), name: NAME });
    await eventually("it is given", () => edge.answers.includes(`+${NAME}`));
    expect(edge.answers).toEqual([`+${NAME}`]);
    const other = await watchSecret(istiod, { account: "other", token: await tokenOf("other"), name: NAME });
    await eventually("it is refused", () => other.answers.length > 0);
    expect(other.answers).toEqual([`-${NAME}`]);
    await eventually("it is told", () => istiod.log().includes("service account shop/other may not read secrets of its namespace"));

    // Who may is asked anew every minute: the one loses what the other is given, while both are connected.
    await cluster.client.apply(secretReaderYaml("other"));
    await eventually("it is given to the other", () => other.answers.at(-1) === `+${NAME}`, ASKED_ANEW_MS);
    await eventually("it is taken from the one", () => edge.answers.at(-1) === `-${NAME}`, ASKED_ANEW_MS);
    expect([edge.answers, other.answers]).toEqual([
      [`+${NAME}`, `-${NAME}`],
      [`-${NAME}`, `+${NAME}`],
    ]);
  });
});
