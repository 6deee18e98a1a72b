import { ANNOTATION } from "../annotations.ts";
import { type Container, type Fields, PROXY_CONTAINER } from "../pod.ts";
import { annotation, interceptionMode, statusPort, type TemplateInput } from "../template-input.ts";
import type { ProxyValues } from "../values.ts";
import { filled } from "./filled.ts";

/** Optional ConfigMap of a namespace with further variables for the agents in it. */
const ENV_CONFIG_MAP = "istio-env";
const READINESS_PATH = "/healthz/ready";
const READINESS_PORT = 15_021;
const PROXY_GROUP = 1337;

/** What the proxy container is in all templates. */
export function proxyContainer(input: TemplateInput, role: "sidecar" | "router", moreArguments: readonly string[] = []): Container {
  const { values, images } = input;
  const own = annotation(input, ANNOTATION.proxyImage, values.global.proxy.image);
  return {
    name: PROXY_CONTAINER,
    image: own.includes("/") ? own : images.proxy,
    args: [...proxyArguments(input, role), ...moreArguments],
    envFrom: [{ configMapRef: { name: ENV_CONFIG_MAP, optional: true } }],
    ...(values.global.imagePullPolicy !== "" && { imagePullPolicy: values.global.imagePullPolicy }),
  };
}

function proxyArguments(input: TemplateInput, role: string): string[] {
  const { global } = input.values;
  return [
    "proxy",
    role,
    "--domain",
    `$(POD_NAMESPACE).svc.${global.proxy.clusterDomain}`,
    `--proxyLogLevel=${annotation(input, ANNOTATION.logLevel, global.proxy.logLevel)}`,
    `--proxyComponentLogLevel=${annotation(input, ANNOTATION.componentLogLevel, global.proxy.componentLogLevel)}`,
    `--log_output_level=${annotation(input, ANNOTATION.agentLogLevel, global.logging.level)}`,
    ...(global.sts.servicePort === 0 ? [] : [`--stsPort=${global.sts.servicePort}`]),
    ...(global.logAsJson ? ["--log_as_json"] : []),
  ];
}

/** How a sidecar is told to start and end, by the application's order: wait for the proxy, or drain it before the application is gone. */
export function sidecarLifecycle(input: TemplateInput): Fields {
  const { lifecycle } = input.values.global.proxy;
  if (Object.keys(lifecycle).length > 0) return { lifecycle };
  const command = (...words: string[]): Fields => ({ exec: { command: ["pilot-agent", ...words] } });
  if (input.native) return { lifecycle: { preStop: command("request", `--debug-port=${statusPort(input)}`, "POST", "drain") } };
  return holdsApplication(input) ? { lifecycle: { postStart: command("wait") } } : {};
}

/** The application starts only once the proxy is ready. A native sidecar does so anyway. */
export const holdsApplication = ({ proxyConfig, values }: TemplateInput): boolean =>
  proxyConfig.holdApplicationUntilProxyStarts === true || values.global.proxy.holdApplicationUntilProxyStarts;

/** Probes of the proxy; none where the agent's port is off. */
export function proxyProbes(input: TemplateInput): Fields {
  if (statusPort(input) === "0") return {};
  const { startupProbe } = input.values.global.proxy;
  return {
    ...(startupProbe.enabled && {
      startupProbe: { ...readyAt(READINESS_PORT), periodSeconds: 1, timeoutSeconds: 3, failureThreshold: startupProbe.failureThreshold },
    }),
    readinessProbe: readinessProbe(input, READINESS_PORT),
  };
}

/** When the proxy is ready, at intervals that the values say and the pod's annotations may change. */
export function readinessProbe(input: TemplateInput, port: number): Fields {
  const { proxy } = input.values.global;
  return readinessAt(port, {
    readinessInitialDelaySeconds: Number(annotation(input, ANNOTATION.readinessInitialDelay, proxy.readinessInitialDelaySeconds)),
    readinessPeriodSeconds: Number(annotation(input, ANNOTATION.readinessPeriod, proxy.readinessPeriodSeconds)),
    readinessFailureThreshold: Number(annotation(input, ANNOTATION.readinessFailures, proxy.readinessFailureThreshold)),
  });
}

type Readiness = Pick<ProxyValues, "readinessInitialDelaySeconds" | "readinessPeriodSeconds" | "readinessFailureThreshold">;

/** The same at given intervals. */
export const readinessAt = (port: number, values: Readiness): Fields => ({
  ...readyAt(port),
  ...(values.readinessInitialDelaySeconds !== 0 && { initialDelaySeconds: values.readinessInitialDelaySeconds }),
  periodSeconds: values.readinessPeriodSeconds,
  timeoutSeconds: 3,
  failureThreshold: values.readinessFailureThreshold,
});

const readyAt = (port: number): Fields => ({ httpGet: { path: READINESS_PATH, port } });

/** As little as the way of interception allows: only TPROXY, and ports below 1024, need root. */
export function sidecarSecurity(input: TemplateInput): Fields {
  const { values, user, proxyConfig } = input;
  const { privileged, seccompProfile } = values.global.proxy;
  const profile = filled("seccompProfile", seccompProfile);
  if (proxyConfig.proxyMetadata.IPTABLES_TRACE_LOGGING === "true")
    return {
      allowPrivilegeEscalation: true,
      capabilities: { add: ["NET_ADMIN"], drop: ["ALL"] },
      privileged: true,
      readOnlyRootFilesystem: true,
      runAsGroup: user.gid,
      runAsNonRoot: false,
      runAsUser: 0,
      ...profile,
    };
  const isTproxy = interceptionMode(input) === "TPROXY";
  const bindsLow = annotation(input, ANNOTATION.capNetBindService, values.global.proxy.capNetBindService) === "true";
  const add = [...(isTproxy ? ["NET_ADMIN"] : []), ...(bindsLow ? ["NET_BIND_SERVICE"] : [])];
  const needsRoot = add.length > 0;
  return {
    allowPrivilegeEscalation: privileged,
    capabilities: { ...(needsRoot && { add }), drop: ["ALL"] },
    privileged,
    readOnlyRootFilesystem: true,
    runAsGroup: needsRoot ? PROXY_GROUP : user.gid,
    runAsNonRoot: !needsRoot,
    runAsUser: needsRoot ? 0 : user.uid,
    ...profile,
  };
}

/** Secrets for pulling images, besides those of the pod. */
export const pullSecrets = ({ values }: TemplateInput): Fields =>
  filled(
    "imagePullSecrets",
    values.global.imagePullSecrets.map((name) => ({ name })),
  );
