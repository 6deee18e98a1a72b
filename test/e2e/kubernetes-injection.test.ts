import { afterAll, assert, beforeAll, describe, expect, it } from "vitest";
import {
  echoImage,
  idleImage,
  type NodeCluster,
  nodeClusterImpossible,
  programImage,
  startNodeCluster,
} from "../cluster/start-node-cluster.ts";
import { installCrds } from "../support/cluster-objects.ts";
import { type Istiod, startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { eventually } from "../support/wait.ts";

const reason = nodeClusterImpossible();
if (reason !== undefined) console.warn(`skipped: ${reason}`);

/** istiod runs on this machine; a Service leads pods to it, as the one of its Deployment would. */
const istiodService = (address: string, port: number): string => `
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: Service
metadata: {name: istiod, namespace: istio-system}
spec: {ports: [{name: https-dns, port: 15012, targetPort: ${port}}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: istiod, namespace: istio-system, labels: {kubernetes.io/service-name: istiod}}
addressType: IPv4
ports: [{name: https-dns, port: ${port}}]
endpoints: [{addresses: ["${address}"], conditions: {ready: true}}]
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio-injection: enabled}}
`;

const workload = (name: string, image: string, extra = ""): string => `
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}, namespace: shop}
spec:
  selector: {matchLabels: {app: ${name}}}
  template:
    metadata: {labels: {app: ${name}}}
    spec: {terminationGracePeriodSeconds: 5, containers: [{name: ${image}, image: ${image}${extra}}]}
`;

/** A Job whose init container and whose work both call others: it must be in the mesh from its first step, and end. */
const JOB = `
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: shop}
spec:
  template:
    metadata: {labels: {app: once}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 5
      initContainers: [{name: before, image: shell, args: ["curl -fsS -m 20 http://echo/first"]}]
      containers: [{name: work, image: shell, args: ["curl -fsS -m 20 http://echo/second"]}]
`;

/** A pod whose proxy is a container like others, and whose application calls somebody first of all: it must be held until the proxy is ready. */
const HELD = `
---
apiVersion: v1
kind: Pod
metadata:
  name: held
  namespace: shop
  labels: {app: held}
  annotations: {sidecar.istio.io/nativeSidecar: "false", proxy.istio.io/config: "holdApplicationUntilProxyStarts: true"}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers: [{name: app, image: shell, args: ["curl -fsS -m 20 http://echo/held && sleep 600"]}]
`;

const ROUTE = `
---
apiVersion: v1
kind: Service
metadata: {name: echo, namespace: shop}
spec: {selector: {app: echo}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: echo, namespace: shop}
spec: {hosts: [echo], http: [{match: [{uri: {prefix: /old}}], rewrite: {uri: /new}, route: [{destination: {host: echo}}]}, {route: [{destination: {host: echo}}]}]}
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {name: strict, namespace: shop}
spec: {mtls: {mode: STRICT}}
`;

describe.skipIf(reason !== undefined)("injected pods that really run", () => {
  let cluster: NodeCluster;
  beforeAll(async () => {
    const images = { echo: echoImage, idle: idleImage, shell: { entrypoint: ["sh", "-c"] }, proxyv2: programImage("istio-agent") };
    cluster = await startNodeCluster({ images });
    await installCrds(cluster);
  });
  afterAll(() => cluster?.stop());

  async function start(): Promise<Istiod> {
    const [secure, webhooks] = [await freePort(), await freePort()];
    const { machineAddress } = cluster.network;
    await cluster.client.apply(istiodService(machineAddress, secure));
    const istiod = await startIstiod({
      files: { "mesh.yaml": "clusterWrites: true\ndefaultConfig: {concurrency: 1, drainDuration: 7s}\n" },
      env: {
        KUBECONFIG: cluster.kubeconfig,
        POD_NAMESPACE: "istio-system",
        SECURE_GRPC_ADDR: `${machineAddress}:${secure}`,
        HTTPS_ADDR: `127.0.0.1:${webhooks}`,
        ISTIO_WEBHOOK_URL: `https://localhost:${webhooks}`,
      },
    });
    await eventually("the roots are in the namespace", () => cluster.client.get("ConfigMap", "shop/istio-ca-root-cert"));
    await eventually("pods are injected", async () => {
      const found = await cluster.client.get("MutatingWebhookConfiguration", "istio-sidecar-injector");
      return JSON.stringify(found?.webhooks ?? "").includes('"Fail"');
    });
    return istiod;
  }

  it("call each other over mutual TLS, routed as written, with probes of the application answered through the agent", async () => {
    await start();
    const probes = ", readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}";
    await cluster.client.apply(workload("echo", "echo", probes) + workload("client", "idle") + ROUTE);
    const [echo] = await cluster.node.readyPods("shop", "app=echo");
    const [client] = await cluster.node.readyPods("shop", "app=client");
    const name = client?.metadata.name ?? assert.fail("no client");
    const call = async (path: string) => {
      const { stdout } = await cluster.node.exec(`shop/${name}`, ["curl", "-sS", "-m", "20", `http://echo${path}`], { container: "idle" });
      return JSON.parse(stdout) as { readonly url: string; readonly headers: Readonly<Record<string, string>> };
    };
    const answer = await eventually("an answer", () => call("/old/path"));
    expect(answer.url).toBe("/new/path");
    expect(answer.headers["x-forwarded-client-cert"]).toContain("URI=spiffe://cluster.local/ns/shop/sa/default");
    // Without the certificate of the mesh nobody comes in: the kubelet neither, whose probe the agent answers.
    await eventually("plaintext is refused", () =>
      fetch(`http://${echo?.status?.podIP}:8080/`).then(
        () => false,
        () => true,
      ),
    );

    // What the mesh says of Envoy's flags stands in no pod: it comes with the bootstrap.
    const info = ["curl", "-sS", "http://127.0.0.1:15000/server_info"];
    const { stdout } = await cluster.node.exec(`shop/${name}`, info, { container: "istio-proxy" });
    expect(JSON.parse(stdout).command_line_options).toMatchObject({ concurrency: 1, drain_time: "7s" });

    expect(cluster.node.logs(`shop/${name}`, "istio-proxy")).not.toContain("cannot be kept on disk");
    await cluster.client.apply(JOB);
    await eventually(
      "the Job has ended well",
      async () => {
        const job = await cluster.client.get("Job", "shop/once");
        return (job?.status as { readonly succeeded?: number } | undefined)?.succeeded === 1;
      },
      180_000,
    );

    await cluster.client.apply(HELD);
    const [held] = await cluster.node.readyPods("shop", "app=held");
    const { containers } = (held?.spec ?? {}) as { readonly containers?: readonly { readonly name: string }[] };
    expect(containers?.map(({ name: one }) => one)).toEqual(["istio-proxy", "app"]);
    const log = await eventually("its first step is done", () => cluster.node.logs("shop/held", "app") || undefined);
    expect(log).toContain('"url":"/held"');

    const ending = `shop/${echo?.metadata.name}`;
    await cluster.client.delete("Pod", ending);
    await eventually("its hook has told the proxy", () =>
      cluster.node.logs(ending, "istio-proxy").includes("draining: the pod is about to end"),
    );
  });
});
