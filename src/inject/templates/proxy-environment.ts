import { MeshConfig_InboundTrafficPolicy_Mode } from "../../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { ANNOTATION, LABEL, parseJson } from "../annotations.ts";
import { appContainers, type EnvVar, isFields } from "../pod.ts";
import { caAddress, discoveryAddress, hasAnnotation, interceptionMode, type TemplateInput } from "../template-input.ts";
import { otelAttributes } from "./otel-attributes.ts";
import { POD_PORTS, podPorts } from "./pod-ports.ts";

/** Where the bootstrap of a user's own is mounted. */
export const BOOTSTRAP_DIRECTORY = "/etc/istio/custom-bootstrap";

/** An empty text is left out, since Kubernetes keeps none: a pod that is injected again would differ. */
export const text = (name: string, value: string): EnvVar => (value === "" ? { name } : { name, value });
/** A variable that the kubelet fills from a field of the pod. */
export const field = (name: string, fieldPath: string): EnvVar => ({ name, valueFrom: { fieldRef: { fieldPath } } });
const limit = (name: string, resource: string): EnvVar => ({ name, valueFrom: { resourceFieldRef: { divisor: "1", resource } } });

/** Variables that ProxyConfig adds to the processes beside the workload. */
export const metadataEnvironment = (metadata: Readonly<Record<string, string>>): EnvVar[] =>
  Object.keys(metadata)
    .sort()
    .map((name) => text(name, metadata[name] ?? ""));

/** What a sidecar is told besides: how probes reach the application, and what traces are to say of it. */
export function sidecarEnvironment(input: TemplateInput): EnvVar[] {
  const workload = input.pod.metadata.labels?.[LABEL.workloadName] || input.owner.name;
  return [
    ...(isLocalhostInbound(input) ? [text("REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION", "true")] : []),
    ...proxyEnvironment(input, workload, [
      ...datadogEnvironment(input),
      ...otelAttributes(input).map((attributes) => text("OTEL_RESOURCE_ATTRIBUTES", attributes)),
    ]),
  ];
}

/** Who the workload is and where istiod is: of the mesh's settings the pod carries nothing else, so a change of them needs no new pods. */
export function proxyEnvironment(input: TemplateInput, workload = input.owner.name, more: readonly EnvVar[] = []): EnvVar[] {
  const { values, proxyConfig } = input;
  return [
    text("PILOT_CERT_PROVIDER", values.global.pilotCertProvider),
    text("ISTIO_ADDRESS", discoveryAddress(input)),
    text("CA_ADDR", caAddress(input)),
    ...placeEnvironment(),
    limit("ISTIO_CPU_LIMIT", "limits.cpu"),
    ...configEnvironment(input),
    limit("GOMEMLIMIT", "limits.memory"),
    ...complianceEnvironment(input.compliancePolicy),
    ...clusterEnvironment(input),
    text("ISTIO_META_INTERCEPTION_MODE", interceptionMode(input)),
    ...(workload === "" ? [] : [text("ISTIO_META_WORKLOAD_NAME", workload)]),
    ...ownerEnvironment(input),
    ...(hasAnnotation(input, ANNOTATION.bootstrapOverride)
      ? [text("ISTIO_BOOTSTRAP_OVERRIDE", `${BOOTSTRAP_DIRECTORY}/custom_bootstrap.json`)]
      : []),
    ...more,
    ...metadataEnvironment(proxyConfig.proxyMetadata),
  ];
}

/** Whether proxies reach their application on loopback (inboundTrafficPolicy LOCALHOST): the agent's probes of it then go there too. */
export const isLocalhostInbound = ({ mesh }: TemplateInput): boolean =>
  mesh.inboundTrafficPolicy?.mode === MeshConfig_InboundTrafficPolicy_Mode.LOCALHOST;

/** What the kubelet knows. */
export const placeEnvironment = (): EnvVar[] => [
  field("POD_NAME", "metadata.name"),
  field("POD_NAMESPACE", "metadata.namespace"),
  field("INSTANCE_IP", "status.podIP"),
  field("SERVICE_ACCOUNT", "spec.serviceAccountName"),
  field("HOST_IP", "status.hostIP"),
];

/** What the pod says about its proxy, and what the proxy is to know of the pod. */
export const configEnvironment = (input: TemplateInput): EnvVar[] => [
  text("PROXY_CONFIG", `${JSON.stringify(input.ownProxyConfig)}\n`),
  text(POD_PORTS, podPorts(input)),
  text(
    "ISTIO_META_APP_CONTAINERS",
    appContainers(input.pod)
      .map(({ name }) => name)
      .join(","),
  ),
];

/** Where the workload is: cluster, node, network, mesh. */
export const clusterEnvironment = ({ values }: TemplateInput): EnvVar[] => [
  text("ISTIO_META_CLUSTER_ID", values.global.multiCluster.clusterName || "Kubernetes"),
  field("ISTIO_META_NODE_NAME", "spec.nodeName"),
  ...(values.global.network === "" ? [] : [text("ISTIO_META_NETWORK", values.global.network)]),
  ...(values.global.meshID === "" ? [] : [text("ISTIO_META_MESH_ID", values.global.meshID)]),
];

/** What the pod belongs to (its Deployment, say), as node metadata names it. */
export function ownerEnvironment({ owner }: TemplateInput): EnvVar[] {
  if (owner.apiVersion === "" || owner.name === "") return [];
  const path = `namespaces/${owner.namespace || "default"}/${owner.kind.toLowerCase()}s/${owner.name}`;
  return [text("ISTIO_META_OWNER", `kubernetes://apis/${owner.apiVersion}/${path}`)];
}

/** The second variable is for an agent written in Go, which a user's own image may hold. */
export const complianceEnvironment = (policy: string): EnvVar[] => [
  ...(policy === "" ? [] : [text("COMPLIANCE_POLICY", policy)]),
  ...(policy === "fips-140-3" ? [text("GODEBUG", "fips140=only")] : []),
];

function datadogEnvironment({ values, pod }: TemplateInput): EnvVar[] {
  const json = pod.metadata.annotations?.["apm.datadoghq.com/env"];
  if (values.global.proxy.tracer !== "datadog" || json === undefined) return [];
  const read = parseJson(json);
  if (!isFields(read)) return [];
  return Object.keys(read)
    .sort()
    .map((name) => text(name, String(read[name])));
}
