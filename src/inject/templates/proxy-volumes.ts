import { ANNOTATION, parseNamedJson } from "../annotations.ts";
import type { Fields, Named } from "../pod.ts";
import { hasAnnotation, type TemplateInput } from "../template-input.ts";
import { BOOTSTRAP_DIRECTORY } from "./proxy-environment.ts";

/** The CA name by which certificates come from the platform in place of the agent. */
export const GKE_CERTIFICATES = "GkeWorkloadCertificate";
const TOKEN_SECONDS = 43_200;

/** A volume at a path of the container. */
export const mount = (name: string, mountPath: string, rest: Fields = {}): Fields => ({ mountPath, name, ...rest });
const empty = (name: string, emptyDir: Fields = {}): Named => ({ name, emptyDir });

/** Which of the volumes a template wants, where templates differ. */
export interface VolumeChoice {
  /** Sockets of credentials that others serve. */
  readonly credentials: boolean;
  readonly revocations: boolean;
  /** Name of the volume with the agent's sockets. */
  readonly working: "istio-envoy" | "istio-xds";
  readonly userVolumes: boolean;
}

/** Mounts of the proxy: its identity, the roots, its token, its working files and what the kubelet says of the pod. */
export function proxyMounts(input: TemplateInput, choice: VolumeChoice): Fields[] {
  const { global } = input.values;
  const hasRoots = global.pilotCertProvider === "istiod";
  return [
    mount("workload-socket", "/var/run/secrets/workload-spiffe-uds"),
    ...(choice.credentials ? [mount("credential-socket", "/var/run/secrets/credential-uds")] : []),
    certificateMount(input),
    ...(hasRoots ? [mount("istiod-ca-cert", "/var/run/secrets/istio")] : []),
    ...(hasRoots && choice.revocations ? [mount("istio-ca-crl", "/var/run/secrets/istio/crl")] : []),
    mount("istio-data", "/var/lib/istio/data"),
    ...(hasAnnotation(input, ANNOTATION.bootstrapOverride) ? [mount("custom-bootstrap-volume", BOOTSTRAP_DIRECTORY)] : []),
    mount(choice.working, "/etc/istio/proxy"),
    mount("istio-token", "/var/run/secrets/tokens"),
    ...(global.mountMtlsCerts ? [mount("istio-certs", "/etc/certs/", { readOnly: true })] : []),
    mount("istio-podinfo", "/etc/istio/pod"),
    ...(choice.userVolumes ? named(input, ANNOTATION.userVolumeMount).map(inKubernetesCase) : []),
  ];
}

/** Where the workload's certificates lie: the platform's, or those the agent writes. */
export const certificateMount = ({ values }: TemplateInput): Fields =>
  values.global.caName === GKE_CERTIFICATES
    ? mount("gke-workload-certificate", "/var/run/secrets/workload-spiffe-credentials", { readOnly: true })
    : mount("workload-certs", "/var/run/secrets/workload-spiffe-credentials");

/** The volumes of those mounts. */
export function proxyVolumes(input: TemplateInput, choice: VolumeChoice): Named[] {
  const { global, pilot } = input.values;
  const crl = { name: pilot.crlConfigMapName || "istio-ca-crl", optional: true };
  return [
    empty("workload-socket"),
    ...(choice.credentials ? [empty("credential-socket")] : []),
    global.caName === GKE_CERTIFICATES
      ? { name: "gke-workload-certificate", csi: { driver: "workloadcertificates.security.cloud.google.com" } }
      : empty("workload-certs"),
    ...bootstrapVolume(input),
    empty(choice.working, { medium: "Memory" }),
    empty("istio-data"),
    podInfo(),
    tokenVolume(global.sds.token.aud),
    ...(global.pilotCertProvider === "istiod" ? [rootsVolume(input)] : []),
    ...(choice.revocations ? [{ name: "istio-ca-crl", configMap: crl }] : []),
    ...(global.mountMtlsCerts ? [certificateSecret(input)] : []),
    ...(choice.userVolumes ? named(input, ANNOTATION.userVolume) : []),
  ];
}

function bootstrapVolume({ pod }: TemplateInput): Named[] {
  const name = pod.metadata.annotations?.[ANNOTATION.bootstrapOverride];
  return name === undefined ? [] : [{ name: "custom-bootstrap-volume", configMap: { name } }];
}

const podInfo = (): Named => ({
  name: "istio-podinfo",
  downwardAPI: {
    items: ["labels", "annotations"].map((path) => ({ path, fieldRef: { fieldPath: `metadata.${path}` } })),
  },
});

const tokenVolume = (audience: string): Named => ({
  name: "istio-token",
  projected: { sources: [{ serviceAccountToken: { path: "istio-token", expirationSeconds: TOKEN_SECONDS, audience } }] },
});

function rootsVolume({ values }: TemplateInput): Named {
  const { trustBundleName } = values.global;
  if (String(values.pilot.env.ENABLE_CLUSTER_TRUST_BUNDLE_API) !== "true")
    return { name: "istiod-ca-cert", configMap: { name: trustBundleName || "istio-ca-root-cert" } };
  const clusterTrustBundle = { name: `istio.io:istiod-ca:${trustBundleName || "root-cert"}`, path: "root-cert.pem" };
  return { name: "istiod-ca-cert", projected: { sources: [{ clusterTrustBundle }] } };
}

const certificateSecret = ({ pod }: TemplateInput): Named => ({
  name: "istio-certs",
  secret: { optional: true, secretName: `istio.${pod.spec.serviceAccountName || "default"}` },
});

/** Volumes or mounts that a user wrote as JSON. */
function named({ pod }: TemplateInput, annotationName: string): Named[] {
  const json = pod.metadata.annotations?.[annotationName];
  return json === undefined ? [] : [...(parseNamedJson(json) ?? [])];
}

const MOUNT_FIELDS = ["name", "mountPath", "subPath", "subPathExpr", "readOnly", "recursiveReadOnly", "mountPropagation"];

/** Fields of a mount in the case that Kubernetes wants: `readonly` is in use, since Istio reads annotations with no regard to case. */
const inKubernetesCase = (mount: Named): Fields =>
  Object.fromEntries(
    Object.entries(mount).map(([key, value]) => [MOUNT_FIELDS.find((field) => field.toLowerCase() === key.toLowerCase()) ?? key, value]),
  );
