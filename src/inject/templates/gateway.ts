import type { Container, PodOverlay } from "../pod.ts";
import type { TemplateInput } from "../template-input.ts";
import { filled } from "./filled.ts";
import { proxyContainer, pullSecrets, readinessAt } from "./proxy-container.ts";
import { proxyEnvironment } from "./proxy-environment.ts";
import { canonicalLabels, commonAnnotations } from "./proxy-metadata.ts";
import { proxyMounts, proxyVolumes, type VolumeChoice } from "./proxy-volumes.ts";

const VOLUMES: VolumeChoice = { credentials: true, revocations: false, working: "istio-envoy", userVolumes: false };
const READINESS_PORT = 15_021;

/** A proxy that is the pod: a gateway, which intercepts nothing and may bind low ports. */
export function gatewayTemplate(input: TemplateInput): PodOverlay {
  const { securityContext } = input.values.gateways;
  const lowPorts = { sysctls: [{ name: "net.ipv4.ip_unprivileged_port_start", value: "0" }] };
  return {
    metadata: { labels: canonicalLabels(input), annotations: commonAnnotations(input) },
    spec: {
      securityContext: Object.keys(securityContext).length > 0 ? securityContext : lowPorts,
      containers: [routerOf(input)],
      volumes: proxyVolumes(input, VOLUMES),
      ...pullSecrets(input),
    },
  };
}

function routerOf(input: TemplateInput): Container {
  const { lifecycle } = input.values.global.proxy;
  return {
    ...proxyContainer(input, "router"),
    ports: [{ containerPort: 15_090, name: "http-envoy-prom", protocol: "TCP" }],
    ...filled("lifecycle", lifecycle),
    securityContext: { runAsUser: input.user.uid, runAsGroup: input.user.gid },
    env: proxyEnvironment(input),
    readinessProbe: readinessAt(READINESS_PORT, input.values.global.proxy),
    volumeMounts: proxyMounts(input, VOLUMES),
  };
}
