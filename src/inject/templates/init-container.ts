import { ANNOTATION } from "../annotations.ts";
import { type Container, type Fields, INIT_CONTAINER, VALIDATION_CONTAINER } from "../pod.ts";
import { annotation, type TemplateInput } from "../template-input.ts";
import { filled } from "./filled.ts";
import { interceptionOf } from "./interception.ts";
import { metadataEnvironment } from "./proxy-environment.ts";
import { proxyResources } from "./proxy-resources.ts";

const DEFAULT_USER = 1337;

/** The container that sends the pod's traffic through the proxy, or, where the CNI plugin has done so, checks that it did. */
export function initContainer(input: TemplateInput): Container {
  const { values, proxyConfig, images } = input;
  const withCni = values.pilot.cni.enabled;
  const own = annotation(input, ANNOTATION.proxyImage, values.global.proxy_init.image);
  const env = metadataEnvironment(proxyConfig.proxyMetadata);
  return {
    name: withCni ? VALIDATION_CONTAINER : INIT_CONTAINER,
    image: own.includes("/") ? own : images.init,
    args: initArguments(input),
    ...(values.global.imagePullPolicy !== "" && { imagePullPolicy: values.global.imagePullPolicy }),
    ...(env.length > 0 && { env }),
    ...filled("resources", proxyResources(input)),
    securityContext: initSecurity(input),
  };
}

function initArguments(input: TemplateInput): string[] {
  const { values, mesh, user } = input;
  const it = interceptionOf(input);
  const option = (flag: string, value: string | undefined): string[] => (value === undefined ? [] : [flag, value]);
  return [
    "istio-iptables",
    ...["-p", String(mesh.proxyListenPort || 15_001)],
    ...["-z", String(mesh.proxyInboundListenPort || 15_006)],
    ...["-u", String(it.mode === "TPROXY" ? DEFAULT_USER : user.uid)],
    ...["-m", it.mode],
    ...["-i", it.includeOutboundIpRanges],
    ...["-x", it.excludeOutboundIpRanges],
    ...["-b", it.includeInboundPorts],
    ...["-d", ["15090,15021", it.excludeInboundPorts].filter((ports) => ports !== "").join(",")],
    ...option("-q", it.includeOutboundPorts),
    ...option("-o", it.excludeOutboundPorts),
    ...option("-k", it.rerouteInterfaces),
    ...option("-c", it.excludeInterfaces),
    `--log_output_level=${annotation(input, ANNOTATION.agentLogLevel, values.global.logging.level)}`,
    ...(values.global.logAsJson ? ["--log_as_json"] : []),
    ...(values.pilot.cni.enabled
      ? ["--run-validation", "--skip-rule-apply"]
      : values.global.proxy_init.forceApplyIptables
        ? ["--force-apply"]
        : []),
    ...(values.global.nativeNftables ? ["--native-nftables"] : []),
  ];
}

function initSecurity(input: TemplateInput): Fields {
  const { values, user } = input;
  const { privileged, seccompProfile } = values.global.proxy;
  const isTproxy = interceptionOf(input).mode === "TPROXY";
  const shared = { allowPrivilegeEscalation: privileged, privileged, ...filled("seccompProfile", seccompProfile) };
  if (!values.pilot.cni.enabled)
    return {
      ...shared,
      capabilities: { add: ["NET_ADMIN", "NET_RAW"], drop: ["ALL"] },
      readOnlyRootFilesystem: false,
      runAsGroup: 0,
      runAsNonRoot: false,
      runAsUser: 0,
    };
  return {
    ...shared,
    capabilities: { drop: ["ALL"] },
    readOnlyRootFilesystem: true,
    runAsGroup: isTproxy ? DEFAULT_USER : user.gid,
    runAsUser: isTproxy ? DEFAULT_USER : user.uid,
    runAsNonRoot: true,
  };
}
