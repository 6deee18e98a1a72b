import type { KindDef } from "../../config/kind-def.ts";
import { statusOfOthers } from "../../config/status/wanted-status.ts";
import type { KubeObject } from "../../kube/resource-type.ts";

/** A document with what is read of an object and nothing else; undefined where nothing of it is. */
export type Shape = (object: KubeObject) => Readonly<Record<string, unknown>> | undefined;

type Json = Readonly<Record<string, unknown>>;

/** Annotations that the mesh reads. Others may be large, and some change all the time. */
const READ_ANNOTATION = /(^|\.)istio\.io\/|^resource\.opentelemetry\.io\/|^openshift\.io\/sa\.scc\./;

/** Entries of Secrets and ConfigMaps that credentials are made of ("Secure Gateways"), and those to fetch images with. */
const CREDENTIAL_ENTRIES = [
  "cert",
  "key",
  "cacert",
  "crl",
  "tls.crt",
  "tls.key",
  "tls.ocsp-staple",
  "ca.crt",
  "ca.crl",
  ".dockerconfigjson",
] as const;

/** A kind of ours: all of its spec, its status only where it says something to us. Annotations are kept but for what kubectl remembers there. */
export const shapeConfig =
  (def: KindDef, apiVersion: string): Shape =>
  (object) => ({
    ...headOf(def, apiVersion),
    metadata: {
      ...metadataOf(object),
      annotations: annotationsOf(object, (name) => name !== LAST_APPLIED),
      generation: object.metadata.generation,
    },
    ...(object.spec !== undefined && { spec: object.spec }),
    // What we write there ourselves must not look like a change.
    ...(def.observe !== undefined && object.status !== undefined && { status: statusOfOthers(object.status) }),
  });

/** A kind of Kubernetes' own, of which `parts` picks what is read besides labels and the annotations of the mesh. */
export const shapeCore =
  (def: KindDef, parts: (object: KubeObject) => Json | undefined): Shape =>
  (object) => {
    const picked = parts(object);
    if (picked === undefined) return undefined;
    const metadata = { ...metadataOf(object), annotations: annotationsOf(object, (name) => READ_ANNOTATION.test(name)) };
    return { ...headOf(def, def.versions[0] ?? "v1"), metadata: { ...metadata, ...fateOf(object, def) }, ...picked };
  };

/** What of a Service is read: what of its spec matters to traffic, and the addresses of its load balancer. */
export function servicePart({ spec, status }: KubeObject): Json {
  const { type, clusterIP, clusterIPs, externalIPs, externalName, selector, ports, sessionAffinity, ...more } = jsonOf(spec);
  const { internalTrafficPolicy, externalTrafficPolicy, trafficDistribution, publishNotReadyAddresses } = more;
  const { ingress } = jsonOf(jsonOf(status).loadBalancer);
  return {
    spec: {
      ...{ type, clusterIP, clusterIPs, externalIPs, externalName, selector, ports: listOf(ports).map(servicePortPart), sessionAffinity },
      ...{ internalTrafficPolicy, externalTrafficPolicy, trafficDistribution, publishNotReadyAddresses },
    },
    status: { loadBalancer: { ingress: listOf(ingress).map(({ ip, hostname }) => ({ ip, hostname })) } },
  };
}

const servicePortPart = ({ name, protocol, port, targetPort, nodePort, appProtocol }: Json): Json => ({
  name,
  protocol,
  port,
  targetPort,
  nodePort,
  appProtocol,
});

/** What of an EndpointSlice is read. */
export const slicePart = ({ addressType, endpoints, ports }: KubeObject): Json => ({
  addressType,
  endpoints: listOf(endpoints).map(endpointPart),
  ports: listOf(ports).map(({ name, protocol, port, appProtocol }) => ({ name, protocol, port, appProtocol })),
});

function endpointPart({ addresses, conditions, hostname, targetRef, nodeName, zone }: Json): Json {
  const { ready, serving, terminating } = jsonOf(conditions);
  const { kind, namespace, name } = jsonOf(targetRef);
  return {
    addresses,
    conditions: { ready, serving, terminating },
    hostname,
    ...(targetRef !== undefined && { targetRef: { kind, namespace, name } }),
    nodeName,
    zone,
  };
}

/** A pod that has ended serves nobody; one that has no address yet is kept, since what is written of it may be asked by name. */
export function podPart({ spec, status }: KubeObject): Json {
  const { nodeName, hostNetwork, serviceAccountName, hostname, subdomain, containers, initContainers } = jsonOf(spec);
  const sidecars = listOf(initContainers).filter(({ restartPolicy, ports }) => restartPolicy === "Always" && listOf(ports).length > 0);
  const { phase, podIP, podIPs, conditions } = jsonOf(status);
  return {
    spec: {
      nodeName,
      hostNetwork,
      serviceAccountName,
      hostname,
      subdomain,
      containers: listOf(containers).map(containerPart),
      ...(sidecars.length > 0 && { initContainers: sidecars.map((one) => ({ ...containerPart(one), restartPolicy: one.restartPolicy })) }),
    },
    status: {
      phase,
      podIP,
      podIPs,
      conditions: listOf(conditions).flatMap(({ type, status: value }) => (type === "Ready" ? [{ type, status: value }] : [])),
    },
  };
}

/** What of a Node is read beside its labels: addresses, and the version of its kubelet. */
export const nodePart = ({ status }: KubeObject): Json => {
  const { addresses, nodeInfo } = jsonOf(status);
  return { status: { addresses, nodeInfo: { kubeletVersion: jsonOf(nodeInfo).kubeletVersion } } };
};

/** For kinds of which the metadata is enough. */
export const nothingMore = (): Json => ({});

/** A Secret that may be a credential; others are none of our business. */
export const secretPart = ({ type, data }: KubeObject): Json | undefined => {
  const entries = credentialEntries(data);
  return entries === undefined ? undefined : { type, data: entries };
};

/** A ConfigMap that holds roots. */
export const rootsPart = ({ data }: KubeObject): Json | undefined => {
  const entries = credentialEntries(data);
  return entries === undefined ? undefined : { data: entries };
};

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

const headOf = (def: KindDef, version: string): Json => ({
  apiVersion: def.group === "" ? version : `${def.group}/${version}`,
  kind: def.writtenKind ?? def.kind,
});

function metadataOf({ metadata }: KubeObject): Json {
  const { name, namespace, labels, creationTimestamp } = metadata;
  return { name, namespace, labels, creationTimestamp };
}

/** Which incarnation of a pod it is, and whether it is on its way out. */
const fateOf = ({ metadata: { uid, deletionTimestamp } }: KubeObject, { kind }: KindDef): Json => ({
  ...(kind === "Pod" && { uid }),
  ...(deletionTimestamp !== undefined && { deletionTimestamp }),
});

function annotationsOf({ metadata }: KubeObject, keep: (name: string) => boolean): Json | undefined {
  const kept = Object.entries(metadata.annotations ?? {}).filter(([name]) => keep(name));
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

const containerPart = ({ name, ports }: Json): Json => ({
  name,
  ports: listOf(ports).map((port) => ({ name: port.name, containerPort: port.containerPort, protocol: port.protocol })),
});

function credentialEntries(data: unknown): Json | undefined {
  const all = jsonOf(data);
  const found = CREDENTIAL_ENTRIES.filter((name) => typeof all[name] === "string");
  return found.length === 0 ? undefined : Object.fromEntries(found.map((name) => [name, all[name]]));
}

const jsonOf = (value: unknown): Json => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {});
const listOf = (value: unknown): readonly Json[] => (Array.isArray(value) ? value.map(jsonOf) : []);
