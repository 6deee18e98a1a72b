import { LABEL } from "../annotations.ts";
import type { Container, PodOverlay } from "../pod.ts";
import { interceptionMode, type TemplateInput } from "../template-input.ts";
import { filled } from "./filled.ts";
import { initContainer } from "./init-container.ts";
import { cniAnnotations } from "./interception.ts";
import { proxyContainer, proxyProbes, pullSecrets, sidecarLifecycle, sidecarSecurity } from "./proxy-container.ts";
import { sidecarEnvironment } from "./proxy-environment.ts";
import { canonicalLabels, commonAnnotations } from "./proxy-metadata.ts";
import { proxyResources } from "./proxy-resources.ts";
import { proxyMounts, proxyVolumes, type VolumeChoice } from "./proxy-volumes.ts";

const VOLUMES: VolumeChoice = { credentials: true, revocations: true, working: "istio-envoy", userVolumes: true };

/** A proxy beside the application, with all of the pod's traffic going through it. */
export function sidecarTemplate(input: TemplateInput): PodOverlay {
  const { native, pod, proxyConfig } = input;
  const labels = pod.metadata.labels ?? {};
  const proxy = proxyOf(input);
  const init = interceptionMode(input) === "NONE" ? [] : [initContainer(input)];
  return {
    metadata: {
      labels: {
        [LABEL.tlsMode]: labels[LABEL.tlsMode] || "istio",
        ...(proxyConfig.proxyMetadata.ISTIO_META_ENABLE_HBONE === "true" && { [LABEL.tunnel]: labels[LABEL.tunnel] || "http" }),
        ...canonicalLabels(input),
      },
      annotations: { ...commonAnnotations(input), ...cniAnnotations(input) },
    },
    spec: {
      ...filled("initContainers", native ? [...init, proxy] : init),
      ...(!native && { containers: [proxy] }),
      volumes: proxyVolumes(input, VOLUMES),
      ...pullSecrets(input),
    },
  };
}

const proxyOf = (input: TemplateInput): Container => ({
  ...proxyContainer(input, "sidecar", outlierLog(input)),
  ...(input.native && { restartPolicy: "Always" }),
  ports: [{ containerPort: 15_090, name: "http-envoy-prom", protocol: "TCP" }],
  ...sidecarLifecycle(input),
  env: sidecarEnvironment(input),
  ...proxyProbes(input),
  securityContext: sidecarSecurity(input),
  ...filled("resources", proxyResources(input)),
  volumeMounts: proxyMounts(input, VOLUMES),
});

const outlierLog = ({ values }: TemplateInput): readonly string[] =>
  values.global.proxy.outlierLogPath === "" ? [] : [`--outlierLogPath=${values.global.proxy.outlierLogPath}`];
