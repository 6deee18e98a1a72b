import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { Metadata } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { DeltaDiscoveryRequestSchema, DeltaDiscoveryResponseSchema } from "../../src/gen/envoy/service/discovery/v3/discovery_pb.js";
import { openAdsClient } from "../../src/wire/grpc-client.ts";
import { SECRET_TYPE } from "../../src/wire/type-urls.ts";
import { type Cluster, clusterImpossible, startCluster } from "../cluster/start-cluster.ts";
import { createCertificateIssuer, tlsSecret } from "../support/certificates.ts";
import { addNamespaces } from "../support/cluster-objects.ts";
import { clientCredentials } from "../support/identity.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { eventually } from "../support/wait.ts";

const reason = clusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

const NAME = "kubernetes://cert";

/** Who asks for a credential as a gateway, and what it is told, one answer after another: `+` given, `-` taken away. */
async function watchSecret(istiod: Istiod, account: string, token: string): Promise<() => readonly string[]> {
  const answers: string[] = [];
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  const client = openAdsClient({
    address: `localhost:${istiod.securePort}`,
    credentials: await clientCredentials(istiod),
    variant: "delta",
    metadata,
    message(bytes) {
      const { resources, removedResources, nonce } = fromBinary(DeltaDiscoveryResponseSchema, bytes);
      answers.push(...resources.map(({ name }) => `+${name}`), ...removedResources.map((name) => `-${name}`));
      const ack = create(DeltaDiscoveryRequestSchema, { typeUrl: SECRET_TYPE, responseNonce: nonce });
      client.send(toBinary(DeltaDiscoveryRequestSchema, ack));
    },
    ended() {},
  });
  onTestFinished(() => client.close());
  const node = { id: `router~127.0.0.8~${account}.shop~shop.svc.cluster.local`, metadata: { NAMESPACE: "shop" } };
  const request = create(DeltaDiscoveryRequestSchema, { node, typeUrl: SECRET_TYPE, resourceNamesSubscribe: [NAME] });
  client.send(toBinary(DeltaDiscoveryRequestSchema, request));
  return () => answers;
}

describe.skipIf(reason !== undefined)("credentials in a cluster", () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ controllerManager: false });
    await addNamespaces(cluster, "shop", "istio-system");
    await cluster.client.apply(`
{apiVersion: v1, kind: ServiceAccount, metadata: {name: edge, namespace: shop}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: other, namespace: shop}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: secrets, namespace: shop}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: secrets, namespace: shop}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: secrets}
subjects: [{kind: ServiceAccount, name: edge, namespace: shop}]
`);
  });
  afterAll(() => cluster?.stop());

  const tokenOf = (account: string): Promise<string> => cluster.createServiceAccountToken("shop", account, { audiences: ["istio-ca"] });

  it("go to gateways whose service account may list secrets there, and are never taken from them while that is found out", async () => {
    const ca = await createCertificateIssuer("servers");
    await cluster.client.apply(tlsSecret("shop/cert", await ca.issue("DNS:a.example.com")));
    const istiod = await startIstiod({ env: { KUBECONFIG: cluster.kubeconfig } });
    const edge = await watchSecret(istiod, "edge", await tokenOf("edge"));
    await eventually("it is given", () => edge().includes(`+${NAME}`));
    expect(edge()).toEqual([`+${NAME}`]);
    const other = await watchSecret(istiod, "other", await tokenOf("other"));
    await eventually("it is refused", () => other().length > 0);
    expect(other()).toEqual([`-${NAME}`]);
    expect(istiod.log()).toContain("service account shop/other may not read secrets of its namespace");
  });
});
