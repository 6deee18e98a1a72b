import { ANNOTATION } from "../annotations.ts";
import { appContainers, type Container, type PodOverlay } from "../pod.ts";
import { caAddress, discoveryAddress, statusPort, type TemplateInput } from "../template-input.ts";
import { filled } from "./filled.ts";
import { proxyContainer, pullSecrets, readinessProbe } from "./proxy-container.ts";
import {
  clusterEnvironment,
  configEnvironment,
  isLocalhostInbound,
  metadataEnvironment,
  ownerEnvironment,
  placeEnvironment,
  text,
} from "./proxy-environment.ts";
import { canonicalLabels, commonAnnotations } from "./proxy-metadata.ts";
import { proxyResources } from "./proxy-resources.ts";
import { certificateMount, mount, proxyMounts, proxyVolumes, type VolumeChoice } from "./proxy-volumes.ts";

const VOLUMES: VolumeChoice = { credentials: false, revocations: false, working: "istio-xds", userVolumes: true };
const AGENT_PORT = 15_020;

/** An agent without Envoy, for applications whose gRPC library speaks xDS itself: it serves them configuration and certificates. */
export function grpcAgentTemplate(input: TemplateInput): PodOverlay {
  return {
    metadata: {
      labels: canonicalLabels(input),
      annotations: { ...commonAnnotations(input), [ANNOTATION.rewriteProbes]: "false" },
    },
    spec: {
      containers: [agentOf(input), ...appContainers(input.pod).map((container) => withBootstrap(input, container))],
      volumes: proxyVolumes(input, VOLUMES),
      ...pullSecrets(input),
    },
  };
}

function agentOf(input: TemplateInput): Container {
  const { values, owner, proxyConfig } = input;
  return {
    ...proxyContainer(input, "sidecar"),
    ports: [{ containerPort: AGENT_PORT, name: "mesh-metrics", protocol: "TCP" }],
    lifecycle: { postStart: { exec: { command: ["pilot-agent", "wait", `--url=http://localhost:${AGENT_PORT}/healthz/ready`] } } },
    env: [
      text("ISTIO_META_GENERATOR", "grpc"),
      text("OUTPUT_CERTS", "/var/lib/istio/data"),
      ...(isLocalhostInbound(input) ? [text("REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION", "true")] : []),
      text("PILOT_CERT_PROVIDER", values.global.pilotCertProvider),
      text("ISTIO_ADDRESS", discoveryAddress(input)),
      text("CA_ADDR", caAddress(input)),
      ...placeEnvironment(),
      ...configEnvironment(input),
      ...clusterEnvironment(input),
      ...(owner.name === "" ? [] : [text("ISTIO_META_WORKLOAD_NAME", owner.name)]),
      ...ownerEnvironment(input),
      ...metadataEnvironment(proxyConfig.proxyMetadata),
      text("ISTIO_META_DNS_CAPTURE", "false"),
      text("DISABLE_ENVOY", "true"),
    ],
    ...(statusPort(input) !== "0" && { readinessProbe: readinessProbe(input, AGENT_PORT) }),
    ...filled("resources", proxyResources(input)),
    volumeMounts: proxyMounts(input, VOLUMES),
  };
}

const withBootstrap = (input: TemplateInput, { name }: Container): Container => ({
  name,
  env: [text("GRPC_XDS_EXPERIMENTAL_SECURITY_SUPPORT", "true"), text("GRPC_XDS_BOOTSTRAP", "/etc/istio/proxy/grpc-bootstrap.json")],
  volumeMounts: [mount("istio-data", "/var/lib/istio/data"), mount("istio-xds", "/etc/istio/proxy"), certificateMount(input)],
});
