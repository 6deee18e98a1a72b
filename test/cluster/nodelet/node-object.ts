import { arch } from "node:os";
import type { KubeClient } from "../kube-client.ts";
import type { KubeObject } from "../kube-object.ts";
import type { NodeNetwork } from "./node-network.ts";
import type { SchedulerNode } from "./scheduler.ts";

/** What the API server is told that nodes have; nothing is enforced. */
export const CAPACITY: Readonly<Record<string, string>> = { cpu: "8", memory: "16Gi", pods: "250", "ephemeral-storage": "64Gi" };

/** Makes a Node of the API: ready, without taints. */
export async function registerNode(client: KubeClient, { name, labels }: SchedulerNode, network: NodeNetwork): Promise<void> {
  const node: KubeObject = {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels },
    spec: { podCIDR: network.podCidr, podCIDRs: [network.podCidr] },
  };
  await client.create(node);
  const conditions = { Ready: "True", MemoryPressure: "False", DiskPressure: "False", PIDPressure: "False" };
  await client.patch("Node", name, {
    subresource: "status",
    body: {
      status: {
        capacity: CAPACITY,
        allocatable: CAPACITY,
        addresses: [
          { type: "InternalIP", address: network.nodeAddress },
          { type: "Hostname", address: name },
        ],
        conditions: Object.entries(conditions).map(([type, status]) => ({ type, status, reason: "Nodelet" })),
        nodeInfo: NODE_INFO,
      },
    },
  });
  // The API server marks a new node as not ready until somebody says otherwise.
  await client.patch("Node", name, { body: { spec: { taints: null } } });
}

const NODE_INFO = {
  kubeletVersion: "v1.34.1",
  kubeProxyVersion: "v1.34.1",
  containerRuntimeVersion: "nodelet://1",
  operatingSystem: "linux",
  architecture: arch() === "x64" ? "amd64" : arch(),
  osImage: "",
  kernelVersion: "",
  machineID: "",
  systemUUID: "",
  bootID: "",
};

/** Labels that a kubelet gives its node, and the test's. */
export const nodeLabels = (name: string, more: Readonly<Record<string, string>>): Readonly<Record<string, string>> => ({
  "kubernetes.io/hostname": name,
  "kubernetes.io/os": "linux",
  "kubernetes.io/arch": NODE_INFO.architecture,
  ...more,
});
