import { afterAll, assert, beforeAll, describe, it } from "vitest";
import { eventually } from "../../support/wait.ts";
import type { KubeObject } from "../start-cluster.ts";
import {
  echoImage,
  idleImage,
  joinNetworks,
  type NodeCluster,
  nodeClusterImpossible,
  type Pod,
  startNodeCluster,
} from "../start-node-cluster.ts";

const reason = nodeClusterImpossible();
if (reason !== undefined) console.warn(`tests of two clusters are skipped: ${reason}`);

const CLIENT = `
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: default, labels: {app: client}}
spec: {nodeSelector: {topology.kubernetes.io/zone: west}, containers: [{name: idle, image: idle}]}
`;

const ECHO = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: echo, namespace: default}
spec:
  selector: {matchLabels: {app: echo}}
  template:
    metadata: {labels: {app: echo}}
    spec:
      containers: [{name: echo, image: echo, readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1}}]
---
apiVersion: v1
kind: Service
metadata: {name: echo, namespace: default}
spec: {type: LoadBalancer, selector: {app: echo}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: host, namespace: default, labels: {app: host}}
spec:
  hostNetwork: true
  containers: [{name: echo, image: echo, args: [--http, "8181"], readinessProbe: {httpGet: {port: 8181}, periodSeconds: 1}}]
`;

interface BalancedService extends KubeObject {
  readonly status: { readonly loadBalancer: { readonly ingress?: readonly { readonly ip: string }[] } };
}

describe.skipIf(reason !== undefined)("two clusters on one machine", () => {
  let here: NodeCluster;
  let there: NodeCluster;

  beforeAll(async () => {
    const images = { echo: echoImage, idle: idleImage };
    const nodes = { east: { "topology.kubernetes.io/zone": "east" }, west: { "topology.kubernetes.io/zone": "west" } };
    [here, there] = await Promise.all([startNodeCluster({ images, nodes }), startNodeCluster({ images, nodes })]);
    await joinNetworks(here.network, there.network);
    await Promise.all([here.client.apply(CLIENT), there.client.apply(ECHO)]);
  });
  afterAll(async () => {
    await here?.stop();
    await there?.stop();
  });

  /** Who answers the client, and from where that was called. */
  const answer = async (url: string): Promise<readonly [by: string | undefined, from: string | undefined]> => {
    const { stdout } = await here.node.exec("default/client", ["curl", "-sS", "-m", "20", url]);
    const { pod, from } = JSON.parse(stdout) as { readonly pod: string; readonly from: string };
    return [pod, from];
  };

  it("put pods on the nodes that they are for", async () => {
    const [client] = await here.node.readyPods("default", "app=client");
    assert.equal(client?.spec.nodeName, "west");
    const echoes = await there.node.readyPods("default", "app=echo", { count: 2 });
    assert.deepEqual(echoes.map(({ spec }) => spec.nodeName).sort(), ["east", "west"]);
  });

  it("reach each other's pods, load balancers and nodes once they are joined", async () => {
    const [client] = await here.node.readyPods("default", "app=client");
    const from = `::ffff:${client?.status?.podIP}`;
    const echoes = await there.node.readyPods("default", "app=echo", { count: 2 });
    const [pod] = echoes;
    assert.deepEqual(await answer(`http://${pod?.status?.podIP}:8080/`), [pod?.metadata.name, from]);
    const balanced = await eventually("an address", async () => {
      const service = await there.client.get<BalancedService>("Service", "default/echo");
      return service?.status.loadBalancer.ingress?.[0]?.ip;
    });
    const [name] = await eventually("it answers", () => answer(`http://${balanced}/`));
    assert.include(
      echoes.map(({ metadata }: Pod) => metadata.name),
      name,
    );
    const [host] = await there.node.readyPods("default", "app=host");
    assert.equal(host?.status?.podIP, there.network.nodeAddress);
    assert.deepEqual(await answer(`http://${host?.status?.podIP}:8181/`), [host?.spec.nodeName, from]);
  });
});
