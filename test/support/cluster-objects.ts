import { dump } from "js-yaml";
import { customResourceDefinitions } from "../../src/config/crd/custom-resource-definition.ts";
import type { Cluster } from "../cluster/start-cluster.ts";
import type { Istiod } from "./istiod.ts";
import { eventually } from "./wait.ts";

/** Resolves when a control plane has read its cluster: it is ready after a while also where that takes longer. */
export async function clusterRead({ httpPort }: Istiod): Promise<void> {
  await eventually("the cluster is read", async () => {
    const page = (await (await fetch(`http://127.0.0.1:${httpPort}/ready?verbose`)).json()) as Readiness;
    return page.checks.some(({ name, ok }) => name === "source k8s://" && ok);
  });
}

interface Readiness {
  readonly checks: readonly { readonly name: string; readonly ok: boolean }[];
}

/** Makes namespaces with the service account that pods of theirs run as. */
export async function addNamespaces(cluster: Cluster, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    await cluster.client.apply(`
apiVersion: v1
kind: Namespace
metadata: {name: ${name}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: default, namespace: ${name}}
`);
  }
}

/** Installs the CustomResourceDefinitions of Istio's kinds, as `istioctl crds | kubectl apply -f -` does; all of them, or these. */
export async function installCrds(cluster: Cluster, kinds?: readonly string[]): Promise<void> {
  const chosen = customResourceDefinitions().filter(({ spec }) => kinds === undefined || kinds.includes(spec.names.kind));
  await cluster.client.apply(chosen.map((item) => dump(item, { lineWidth: -1, noRefs: true })).join("---\n"));
}

/** Lets a service account read the Secrets of its namespace. */
export const secretReaderYaml = (account: string, namespace = "shop"): string => `
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: secrets, namespace: ${namespace}}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get, list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: secrets, namespace: ${namespace}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: secrets}
subjects: [{kind: ServiceAccount, name: ${account}, namespace: ${namespace}}]
`;

/** A Service with one HTTP port. */
export const serviceYaml = (name: string, { namespace = "shop", port = 80 } = {}): string => `
---
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: ${namespace}}
spec: {selector: {app: ${name}}, ports: [{name: http, port: ${port}, targetPort: 8080}]}
`;

/** Its EndpointSlice; an address may be that of a pod. */
export const sliceYaml = (
  service: string,
  addresses: readonly string[],
  { namespace = "shop", pods = {} as Readonly<Record<string, string>> } = {},
): string => `
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${service}-1, namespace: ${namespace}, labels: {kubernetes.io/service-name: ${service}}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints: ${JSON.stringify(
  addresses.map((address) => ({
    addresses: [address],
    conditions: { ready: true },
    ...(pods[address] !== undefined && { targetRef: { kind: "Pod", name: pods[address], namespace } }),
  })),
)}
`;

export interface PodOptions {
  readonly name: string;
  readonly namespace?: string;
  readonly address: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly node?: string;
  /** The service account it runs as, if not `default`. */
  readonly account?: string;
}

/** A pod that runs, as a kubelet would say. */
export async function addPod(
  cluster: Cluster,
  { name, namespace = "shop", address, labels = {}, node, account }: PodOptions,
): Promise<void> {
  const fields = `${node === undefined ? "" : `nodeName: ${node}, `}${account === undefined ? "" : `serviceAccountName: ${account}, `}`;
  await cluster.client.apply(`
apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: ${namespace}, labels: ${JSON.stringify(labels)}}
spec: {${fields}containers: [{name: app, image: app, ports: [{name: web, containerPort: 8080}]}]}
`);
  await cluster.client.patch("Pod", `${namespace}/${name}`, {
    subresource: "status",
    body: {
      status: { phase: "Running", podIP: address, podIPs: [{ ip: address }], conditions: [{ type: "Ready", status: "True" }] },
    },
  });
}
