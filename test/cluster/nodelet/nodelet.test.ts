import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, assert, beforeAll, describe, it } from "vitest";
import { eventually } from "../../support/wait.ts";
import { echoImage, idleImage, type NodeCluster, nodeClusterImpossible, type Pod, startNodeCluster } from "../start-node-cluster.ts";

const reason = nodeClusterImpossible();
if (reason !== undefined) console.warn(`tests of the nodelet are skipped: ${reason}`);

const SHOP = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: echo, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      containers:
      - name: echo
        image: registry.example.com/echo:1
        ports: [{containerPort: 8080, name: http}]
        readinessProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 1, failureThreshold: 1}
---
apiVersion: v1
kind: Service
metadata: {name: echo, namespace: shop}
spec: {type: LoadBalancer, selector: {app: echo}, ports: [{name: http, port: 80, targetPort: http}]}
---
apiVersion: v1
kind: Service
metadata: {name: each, namespace: shop}
spec: {clusterIP: None, selector: {app: echo}, ports: [{name: http, port: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: nobody, namespace: shop}
spec: {selector: {app: nobody}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: alias, namespace: shop}
spec: {type: ExternalName, externalName: echo.shop.svc.cluster.local}
---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: shop, labels: {app: client}}
spec: {containers: [{name: idle, image: idle}]}
`;

interface Service {
  readonly spec: { readonly clusterIP: string; readonly ports: readonly { readonly nodePort: number }[] };
  readonly status: { readonly loadBalancer: { readonly ingress?: readonly { readonly ip: string }[] } };
}

describe.skipIf(reason !== undefined)("a cluster whose pods run", () => {
  let cluster: NodeCluster;
  let echoes: readonly Pod[];

  beforeAll(async () => {
    cluster = await startNodeCluster({ images: { echo: echoImage, idle: idleImage }, names: { "outside.example.com": ["192.0.2.80"] } });
    await cluster.client.apply(SHOP);
    echoes = await cluster.node.readyPods("shop", "app=echo", { count: 2 });
    await cluster.node.readyPods("shop", "app=client");
  });
  afterAll(() => cluster?.stop());

  const run = async (...command: readonly string[]): Promise<string> => {
    const { code, stdout, stderr } = await cluster.node.exec("shop/client", command);
    return code === 0 ? stdout : `${code}: ${stderr}`;
  };
  /** Who answers the client, by pod, as the pods themselves say. */
  const answers = async (url: string): Promise<ReadonlySet<string>> => {
    const text = await run("sh", "-c", `for i in 1 2 3 4 5 6 7 8 9 10 11 12; do curl -sS -m 20 ${url}; echo; done`);
    return new Set(
      text
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as { readonly pod: string }).pod),
    );
  };
  const names = (): readonly string[] => echoes.map(({ metadata }) => metadata.name).sort();
  const addressOf = (index: number): string => echoes[index]?.status?.podIP ?? "";
  const setHealth = (index: number, status: number): Promise<unknown> =>
    fetch(`http://${addressOf(index)}:8080/health?status=${status}`, { method: "POST" });
  const service = async (name: string): Promise<Service> => (await cluster.client.get("Service", name)) as unknown as Service;

  it("reaches all pods of a Service by its name, as itself", async () => {
    await eventually("both answer", async () => [...(await answers("http://echo/"))].sort().join() === names().join());
    const client = await cluster.client.get<Pod>("Pod", "shop/client");
    const { from } = JSON.parse(await run("curl", "-sS", "http://echo.shop.svc.cluster.local/")) as { readonly from: string };
    assert.equal(from, `::ffff:${client?.status?.podIP}`);
  });

  it("reaches a Service from this machine: where the API server is, and where clients outside are", async () => {
    const balanced = await eventually("an address", async () => (await service("shop/echo")).status.loadBalancer.ingress?.[0]?.ip);
    const { spec } = await service("shop/echo");
    const { hostIP } = (await cluster.client.get<Pod>("Pod", "shop/client"))?.status ?? {};
    for (const host of [spec.clusterIP, balanced, `${hostIP}:${spec.ports[0]?.nodePort}`]) {
      const by = await eventually(host, async () => (await fetch(`http://${host}/`)).headers.get("x-served-by") ?? undefined);
      assert.include(names(), by, host);
    }
  });

  it("refuses a Service without endpoints at once", async () => {
    await eventually("it is refused", async () =>
      /Connection refused/.test(await run("timeout", "5", "bash", "-c", "< /dev/tcp/nobody/80")),
    );
  });

  it("answers for names: headless, external, given, unknown", async () => {
    const found = async (name: string): Promise<readonly string[]> =>
      [
        ...new Set(
          (await run("getent", "ahostsv4", name))
            .trim()
            .split("\n")
            .map((line) => line.split(" ")[0] ?? ""),
        ),
      ].sort();
    // Both pods are ready; that the name leads to them follows.
    const addresses = [addressOf(0), addressOf(1)].sort().join();
    await eventually("the name leads to both pods", async () => (await found("each")).join() === addresses);
    const { clusterIP } = (await service("shop/echo")).spec;
    await eventually("the alias is known", async () => (await found("alias")).join() === clusterIP);
    assert.deepEqual(await found("outside.example.com"), ["192.0.2.80"]);
    assert.deepEqual(await found("absent"), ["2:"]);
  });

  it("gives pods a way to the API server and a token for it", async () => {
    const dir = "/var/run/secrets/kubernetes.io/serviceaccount";
    const script = `curl -sS --cacert ${dir}/ca.crt -H "Authorization: Bearer $(cat ${dir}/token)" https://kubernetes.default.svc/api/v1/namespaces/shop/pods`;
    await eventually("it is known there", async () =>
      /system:serviceaccount:shop:default\\" cannot list resource/.test(await run("sh", "-c", script)),
    );
  });

  it("sends nothing to a pod whose readiness probe fails, until it passes again", async () => {
    const [first = "", second = ""] = echoes.map(({ metadata }) => metadata.name);
    await setHealth(0, 503);
    await eventually("only the other answers", async () => [...(await answers("http://echo/"))].join() === second);
    await setHealth(0, 200);
    await eventually("it answers again", async () => (await answers("http://echo/")).has(first));
  });

  it("replaces a pod that is deleted, and leaves nothing of it", async () => {
    const [gone] = echoes;
    const namespaces = (): readonly string[] => execFileSync("ip", ["netns", "list"]).toString().split("\n");
    const own = namespaces().filter((line) => line.includes((gone?.metadata.uid ?? "").replaceAll("-", "").slice(0, 12)));
    assert.equal(own.length, 1);
    await cluster.client.delete("Pod", `shop/${gone?.metadata.name}`);
    await eventually("it is gone", async () => (await cluster.client.get("Pod", `shop/${gone?.metadata.name}`)) === undefined);
    echoes = await cluster.node.readyPods("shop", "app=echo", { count: 2 });
    assert.notInclude(names(), gone?.metadata.name);
    assert.deepEqual(
      namespaces().filter((line) => own.includes(line)),
      [],
    );
    assert.notInclude(readdirSync(join(cluster.dir, "pods")), gone?.metadata.uid);
    await eventually("the new ones answer", async () => [...(await answers("http://echo/"))].sort().join() === names().join());
  });
});
