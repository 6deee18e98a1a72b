import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, assert, beforeAll, describe, expect, it } from "vitest";
import {
  echoImage,
  idleImage,
  type NodeCluster,
  nodeClusterImpossible,
  programImage,
  startNodeCluster,
} from "../cluster/start-node-cluster.ts";
import { serviceYaml } from "../support/cluster-objects.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { eventually } from "../support/wait.ts";

/*
 * The objects of deploy/istiod.yaml are in the cluster, their Deployment has no pods, and istiod runs on a machine beside it, with the rights of those
 * objects: injected pods find it and each other as if it ran inside.
 */

const reason = nodeClusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

const app = (name: string, image: string): string => `
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: ${name}, namespace: shop}
---
apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: shop, labels: {app: ${name}}}
spec: {serviceAccountName: ${name}, terminationGracePeriodSeconds: 1, containers: [{name: ${image}, image: ${image}}]}
`;

const SHOP = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio-injection: enabled}}
${serviceYaml("catalog")}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: strict, namespace: shop}
spec: {mtls: {mode: STRICT}}
`;

/** Leads the Service of the manifest to a machine outside. */
const sliceTo = (address: string, ports: { readonly secure: number; readonly webhooks: number }): string => `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: istiod-outside, namespace: istio-system, labels: {kubernetes.io/service-name: istiod}}
addressType: IPv4
ports: [{name: https-dns, port: ${ports.secure}, protocol: TCP}, {name: https-webhook, port: ${ports.webhooks}, protocol: TCP}]
endpoints: [{addresses: [${address}], conditions: {ready: true}}]
`;

describe.skipIf(reason !== undefined)("istiod beside a cluster with deploy/istiod.yaml", () => {
  let cluster: NodeCluster;
  beforeAll(async () => {
    cluster = await startNodeCluster({ images: { echo: echoImage, idle: idleImage, proxyv2: programImage("istio-agent") } });
    const manifest = await readFile(join(import.meta.dirname, "../../deploy/istiod.yaml"), "utf8");
    await cluster.client.apply(manifest);
    await cluster.client.patch("Deployment", "istio-system/istiod", { body: { spec: { replicas: 0 } } });
  });
  afterAll(() => cluster?.stop());

  it("injects pods, gives them certificates, and judges objects, as the Deployment would", async () => {
    const { machineAddress } = cluster.network;
    const [secure, webhooks] = [await freePort(), await freePort()];
    const istiod = await startIstiod({
      files: { "mesh.yaml": "clusterWrites: true\n" },
      env: {
        KUBECONFIG: await cluster.kubeconfigFor("istio-system", "istiod"),
        SECURE_GRPC_ADDR: `${machineAddress}:${secure}`,
        HTTPS_ADDR: `${machineAddress}:${webhooks}`,
        ISTIO_WEBHOOK_URL: `https://${machineAddress}:${webhooks}`,
      },
    });
    expect(istiod.log().split("\n")[0]).toMatch(/using the Kubernetes cluster.*mode=reads and writes/);
    await cluster.client.apply(sliceTo(machineAddress, { secure, webhooks }));
    await eventually("the API server has reached it", async () =>
      JSON.stringify(await cluster.client.get("MutatingWebhookConfiguration", "istio-sidecar-injector")).includes('"Fail"'),
    );
    await cluster.client.apply(`${SHOP}${app("catalog", "echo")}${app("client", "idle")}`);
    for (const name of ["catalog", "client"]) await cluster.node.readyPods("shop", `app=${name}`);
    const answer = await eventually("an answer", async () => {
      const { stdout, stderr } = await cluster.node.exec("shop/client", ["curl", "-fsS", "-m", "20", "http://catalog/"], {
        container: "idle",
      });
      assert(stdout !== "", stderr);
      return JSON.parse(stdout) as { readonly headers: Readonly<Record<string, string>> };
    });
    expect(answer.headers["x-forwarded-client-cert"]).toContain("URI=spiffe://cluster.local/ns/shop/sa/client");
    await expect(
      cluster.client.apply(`
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: bad, namespace: shop}
spec: {hosts: [catalog], http: [{route: [{destination: {host: catalog}}], redirect: {uri: /}}]}
`),
    ).rejects.toThrow(/spec\.http\[0\]\.route: cannot be combined with redirect/);
    expect(istiod.log()).not.toMatch(/forbidden/i);
  });
});
