import { customResourceDefinitions } from "../src/config/crd/custom-resource-definition.ts";
import type { Cluster, KubeObject } from "../test/cluster/start-cluster.ts";
import type { SceneProxy } from "./scene.ts";

/** How large a cluster is. As with scenes of files, everything else follows from it by arithmetic. */
export interface ClusterShape {
  readonly services: number;
  /** Of each service; each is a Pod with a sidecar, listed by the EndpointSlice of its Service. */
  readonly endpoints: number;
  readonly namespaces: number;
  readonly nodes: number;
  /** Pods whose proxies connect: those of the first services. */
  readonly proxies: number;
}

/** An EndpointSlice to be patched, and the address by which its effect is known in what proxies are sent. */
export interface SlicePatch {
  readonly path: string;
  readonly body: object;
  readonly marker: string;
}

/** Requests that are under way at once while a scene is written. */
const WRITERS = 32;

/** Writes a scene through the API server: definitions of Istio's kinds, Nodes, Namespaces, and in these accounts, Services, EndpointSlices and Pods. */
export async function writeClusterScene({ client }: Cluster, shape: ClusterShape): Promise<void> {
  const services = Array.from({ length: shape.services }, (_, index) => placeOf(shape, index));
  const namespaces = ["istio-system", ...Array.from({ length: shape.namespaces }, (_, index) => namespaceOf(index))];
  const nodes = Array.from({ length: shape.nodes }, (_, index) => nodeObject(index));
  const create = (object: KubeObject): Promise<unknown> => client.create(object);
  await all([...customResourceDefinitions().map((one) => ({ ...one })), ...namespaces.map(namespaceObject), ...nodes], create);
  await all(services.map(accountObject), create);
  await all([...services.flatMap((one) => [serviceObject(one), sliceObject(one)]), ...movingObjects()], create);
  const pods = services.flatMap(podObjects);
  // What a pod says of itself is written by its kubelet, apart from what is wanted of it.
  await all(pods, async (pod) => {
    const { metadata } = await client.create(pod);
    const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}/status`;
    await client.api.call({ method: "PUT", path, body: { ...pod, metadata } });
  });
}

/** What a scene is as JSON, in MB: Services, EndpointSlices and Pods as the API server lists them. */
export async function clusterSceneMb({ client }: Cluster): Promise<number> {
  let bytes = 0;
  for (const path of ["/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices", "/api/v1/pods"]) {
    for await (const chunk of await client.api.open({ method: "GET", path })) bytes += (chunk as Buffer).length;
  }
  return bytes / 1024 / 1024;
}

/** Services whose pods have proxies that connect. */
export const clusterClasses = ({ proxies, endpoints }: ClusterShape): number => Math.max(1, Math.ceil(proxies / endpoints));

/** The proxies of a scene: pods of the first services, service by service in turn. They are called and numbered as those of the load client (`xdsload.ts`) are. */
export function clusterProxies(shape: ClusterShape): readonly SceneProxy[] {
  const classes = clusterClasses(shape);
  return Array.from({ length: shape.proxies }, (_, index) => {
    const service = placeOf(shape, index % classes);
    const pod = Math.floor(index / classes);
    const { app, namespace } = service;
    return { name: podName(service, pod), namespace, address: podAddress(service, pod), app, vhds: false };
  });
}

/** Another address behind the Service that has no pods of its own. */
export function slicePatch(step: number): SlicePatch {
  const marker = `10.126.${100 + Math.floor(step / 100)}.${100 + (step % 100)}`;
  return {
    path: `/apis/discovery.k8s.io/v1/namespaces/${namespaceOf(0)}/endpointslices/${MOVING}-1`,
    body: { endpoints: movingEndpoints(marker) },
    marker,
  };
}

const MOVING = "moving";

interface ServicePlace {
  readonly index: number;
  readonly app: string;
  readonly namespace: string;
  readonly shape: ClusterShape;
}

const placeOf = (shape: ClusterShape, index: number): ServicePlace => ({
  index,
  app: `app-${index}`,
  namespace: namespaceOf(index % shape.namespaces),
  shape,
});
const namespaceOf = (index: number): string => `ns-${index}`;
const nodeOf = ({ index, shape }: ServicePlace, pod: number): number => (index + pod) % shape.nodes;
const nodeName = (index: number): string => `node-${index}`;
const nodeAddress = (index: number): string => `192.168.${index >> 8}.${index & 255}`;
const podName = ({ app }: ServicePlace, pod: number): string => `${app}-${pod}`;
const podAddress = ({ index, shape }: ServicePlace, pod: number): string => {
  const classes = clusterClasses(shape);
  return index < classes ? addressOf(128, pod * classes + index) : addressOf(1, index * shape.endpoints + pod);
};
const addressOf = (first: number, number: number): string => `10.${first + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;

const namespaceObject = (name: string): KubeObject => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } });

const accountObject = ({ app, namespace }: ServicePlace): KubeObject => ({
  apiVersion: "v1",
  kind: "ServiceAccount",
  metadata: { name: app, namespace },
});

const nodeObject = (index: number): KubeObject => ({
  apiVersion: "v1",
  kind: "Node",
  metadata: {
    name: nodeName(index),
    labels: {
      "kubernetes.io/hostname": nodeName(index),
      "topology.kubernetes.io/region": "region",
      "topology.kubernetes.io/zone": `zone-${index % 3}`,
    },
  },
  status: { addresses: [{ type: "InternalIP", address: nodeAddress(index) }] },
});

const serviceObject = ({ app, namespace }: ServicePlace): KubeObject => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name: app, namespace, labels: { app } },
  spec: { selector: { app }, ports: [{ name: "http", port: 80, targetPort: 8080 }] },
});

const sliceObject = (service: ServicePlace): KubeObject => {
  const { app, namespace, shape } = service;
  const endpoints = Array.from({ length: shape.endpoints }, (_, pod) => ({
    addresses: [podAddress(service, pod)],
    conditions: { ready: true, serving: true, terminating: false },
    nodeName: nodeName(nodeOf(service, pod)),
    zone: `zone-${nodeOf(service, pod) % 3}`,
    targetRef: { kind: "Pod", name: podName(service, pod), namespace },
  }));
  return sliceOf(app, namespace, endpoints);
};

/** A Service without a selector, whose addresses somebody else writes. */
const movingObjects = (): readonly KubeObject[] => [
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: MOVING, namespace: namespaceOf(0) },
    spec: { ports: [{ name: "http", port: 80, targetPort: 8080 }] },
  },
  sliceOf(MOVING, namespaceOf(0), movingEndpoints("10.127.3.2")),
];

const movingEndpoints = (address: string): readonly object[] =>
  ["10.127.3.1", address].map((one) => ({ addresses: [one], conditions: { ready: true } }));

const sliceOf = (service: string, namespace: string, endpoints: readonly object[]): KubeObject => ({
  apiVersion: "discovery.k8s.io/v1",
  kind: "EndpointSlice",
  metadata: { name: `${service}-1`, namespace, labels: { "kubernetes.io/service-name": service } },
  addressType: "IPv4",
  ports: [{ name: "http", port: 8080, protocol: "TCP" }],
  endpoints,
});

const podObjects = (service: ServicePlace): readonly KubeObject[] =>
  Array.from({ length: service.shape.endpoints }, (_, pod) => podObject(service, pod));

/** A pod as a StatefulSet makes it and injection leaves it, in little. */
function podObject(service: ServicePlace, pod: number): KubeObject {
  const { app, namespace } = service;
  const node = nodeOf(service, pod);
  const [address, host] = [podAddress(service, pod), nodeAddress(node)];
  const since = "2026-01-01T00:00:00Z";
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: podName(service, pod),
      namespace,
      labels: {
        app,
        version: "v1",
        "security.istio.io/tlsMode": "istio",
        "service.istio.io/canonical-name": app,
        "service.istio.io/canonical-revision": "v1",
      },
      annotations: { "prometheus.io/scrape": "true", "prometheus.io/port": "15020", "kubectl.kubernetes.io/default-container": "app" },
    },
    spec: { nodeName: nodeName(node), serviceAccountName: app, containers: [appContainer, proxyContainer] },
    status: {
      phase: "Running",
      hostIP: host,
      podIP: address,
      podIPs: [{ ip: address }],
      startTime: since,
      conditions: ["Initialized", "Ready", "ContainersReady", "PodScheduled"].map((type) => ({
        type,
        status: "True",
        lastTransitionTime: since,
      })),
      containerStatuses: [appContainer, proxyContainer].map(({ name, image }) => ({
        name,
        image,
        imageID: `${image}@sha256:${"0".repeat(64)}`,
        containerID: `containerd://${"0".repeat(64)}`,
        ready: true,
        started: true,
        restartCount: 0,
        state: { running: { startedAt: since } },
      })),
    },
  };
}

const appContainer = {
  name: "app",
  image: "registry.example.com/shop/app:1.0.0",
  ports: [{ name: "http", containerPort: 8080 }],
  env: [{ name: "LEVEL", value: "info" }],
  resources: { requests: { cpu: "100m", memory: "128Mi" } },
  readinessProbe: { httpGet: { path: "/app-health/app/readyz", port: 15020 } },
};

const fieldEnv = (name: string, fieldPath: string): object => ({ name, valueFrom: { fieldRef: { fieldPath } } });

const proxyContainer = {
  name: "istio-proxy",
  image: "docker.io/istio/proxyv2:1.27.0",
  args: ["proxy", "sidecar", "--domain", "$(POD_NAMESPACE).svc.cluster.local"],
  ports: [{ name: "http-envoy-prom", containerPort: 15090 }],
  env: [
    fieldEnv("POD_NAME", "metadata.name"),
    fieldEnv("POD_NAMESPACE", "metadata.namespace"),
    fieldEnv("INSTANCE_IP", "status.podIP"),
    fieldEnv("SERVICE_ACCOUNT", "spec.serviceAccountName"),
    { name: "ISTIO_META_CLUSTER_ID", value: "Kubernetes" },
  ],
  resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { cpu: "2", memory: "1Gi" } },
  readinessProbe: { httpGet: { path: "/healthz/ready", port: 15021 }, periodSeconds: 15 },
};

/** Does something with every object, a number of them at once. */
async function all(objects: readonly KubeObject[], work: (object: KubeObject) => Promise<unknown>): Promise<void> {
  const left = objects.values();
  await Promise.all(
    Array.from({ length: WRITERS }, async () => {
      for (const object of left) await work(object);
    }),
  );
}
