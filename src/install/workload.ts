import type { KubeObject } from "../kube/resource-type.ts";
import { type InstallOptions, installLabels, installName, podSelector } from "./install-options.ts";

/** A port of the control plane: number in the pod, and how the Service has it, where it does. */
interface Port {
  readonly name: string;
  readonly containerPort: number;
  readonly service?: { readonly name: string; readonly port: number };
}

const PORTS: readonly Port[] = [
  { name: "http-debug", containerPort: 8080 },
  { name: "tls-xds", containerPort: 15012, service: { name: "https-dns", port: 15012 } },
  { name: "https-webhooks", containerPort: 15017, service: { name: "https-webhook", port: 443 } },
  { name: "http-monitoring", containerPort: 15014, service: { name: "http-monitoring", port: 15014 } },
];

/** Whoever it is, it is not root, and the same as in the images. */
const USER = 1337;
/** The only place that is written to: what must outlive a restart of the process. In memory, since keys are among it. */
const STATE = "/var/lib/istio";

/** What runs, under which name it is reached, and how many of it must stay. */
export const workloadObjects = (options: InstallOptions): readonly KubeObject[] => [
  service(options),
  deployment(options),
  disruptionBudget(options),
];

function service(options: InstallOptions): KubeObject {
  const ports = PORTS.flatMap((port) =>
    port.service === undefined ? [] : [{ ...port.service, protocol: "TCP", targetPort: port.containerPort }],
  );
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: installName(options), namespace: options.namespace, labels: { ...installLabels(options), istio: "pilot" } },
    spec: { selector: podSelector(options), ports },
  };
}

function deployment(options: InstallOptions): KubeObject {
  const labels = { ...installLabels(options), ...podSelector(options) };
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: installName(options), namespace: options.namespace, labels },
    spec: {
      replicas: options.replicas,
      // A replica that goes is replaced before: proxies move to one that serves.
      strategy: { rollingUpdate: { maxSurge: "100%", maxUnavailable: 0 } },
      selector: { matchLabels: podSelector(options) },
      template: {
        metadata: {
          labels: { ...labels, "sidecar.istio.io/inject": "false", "istio.io/dataplane-mode": "none" },
          annotations: { "prometheus.io/port": "15014", "prometheus.io/scrape": "true" },
        },
        spec: podSpec(options),
      },
    },
  };
}

function podSpec(options: InstallOptions): Readonly<Record<string, unknown>> {
  return {
    serviceAccountName: installName(options),
    securityContext: { runAsNonRoot: true, runAsUser: USER, runAsGroup: USER, fsGroup: USER, seccompProfile: { type: "RuntimeDefault" } },
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: "kubernetes.io/hostname",
        whenUnsatisfiable: "ScheduleAnyway",
        labelSelector: { matchLabels: podSelector(options) },
      },
    ],
    containers: [container(options)],
    volumes: [{ name: "state", emptyDir: { medium: "Memory", sizeLimit: "256Mi" } }],
  };
}

/** It has no liveness probe: one that waits for the API server would be restarted for it, and is no better afterwards. */
function container({ image, revision }: InstallOptions): Readonly<Record<string, unknown>> {
  const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  return {
    name: "discovery",
    image,
    imagePullPolicy: "IfNotPresent",
    ports: PORTS.map(({ name, containerPort }) => ({ name, containerPort, protocol: "TCP" })),
    env: [
      { name: "ISTIO_HOME", value: "/" },
      { name: "REVISION", value: revision },
      field("POD_NAME", "metadata.name"),
      field("POD_NAMESPACE", "metadata.namespace"),
    ],
    // Further settings of docs/settings.md, for who keeps them apart from this file.
    envFrom: [{ configMapRef: { name: "istio-env", optional: true } }],
    readinessProbe: { httpGet: { path: "/ready", port: 8080 }, periodSeconds: 3, timeoutSeconds: 5 },
    resources: { requests: { cpu: "250m", memory: "512Mi" }, limits: { memory: "2Gi" } },
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] }, readOnlyRootFilesystem: true },
    volumeMounts: [{ name: "state", mountPath: STATE }],
  };
}

const disruptionBudget = (options: InstallOptions): KubeObject => ({
  apiVersion: "policy/v1",
  kind: "PodDisruptionBudget",
  metadata: { name: installName(options), namespace: options.namespace, labels: installLabels(options) },
  spec: { minAvailable: 1, selector: { matchLabels: podSelector(options) } },
});
