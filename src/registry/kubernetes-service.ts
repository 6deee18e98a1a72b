import { canonicalAddress } from "../base/address.ts";
import { serviceHost } from "../base/hostname.ts";
import type { ServiceSpec } from "../config/kinds/service/service.ts";
import { type ConfigObject, objectKey } from "../config/object.ts";
import { protocolOfPort } from "../model/protocol.ts";
import type { Resolution } from "../model/service.ts";
import type { Declaration, DeclarationDefaults, DeclaredPort } from "./declaration.ts";
import { trafficDistributionOf } from "./traffic-distribution.ts";

/** What a Kubernetes Service declares. Ports that are not TCP are left out: they are not proxied. */
export function declareKubernetesService(object: ConfigObject<ServiceSpec>, domain: string, defaults: DeclarationDefaults): Declaration {
  const { spec } = object;
  const external = spec.type === "ExternalName" && spec.externalName !== undefined;
  const headless = !external && spec.clusterIP === "None";
  const addresses = clusterAddresses(spec);
  return {
    namespace: object.namespace,
    name: object.name,
    source: "Kubernetes",
    objectKey: objectKey(object),
    hosts: [serviceHost(object.name, object.namespace, domain)],
    ports: declaredPorts(spec),
    addresses,
    resolution: resolutionOf(external, headless),
    headless,
    meshExternal: external,
    exportTo: exportToOf(object.annotations["networking.istio.io/exportTo"]) ?? defaults.exportTo,
    labels: object.labels,
    selector: Object.keys(spec.selector).length > 0 ? spec.selector : undefined,
    subjectAltNames: listOf(object.annotations["alpha.istio.io/canonical-serviceaccounts"]),
    externalName: external ? spec.externalName : undefined,
    nodeLocal: spec.internalTrafficPolicy === "Local",
    trafficDistribution: trafficDistributionOf({
      field: spec.trafficDistribution,
      annotations: object.annotations,
      namespace: defaults.distribution,
    }),
    publishNotReadyAddresses: spec.publishNotReadyAddresses === true,
    ...(spec.sessionAffinity === "ClientIP" && { clientAffinity: true }),
    raceConnects: false,
    declaredAccounts: listOf(object.annotations["alpha.istio.io/kubernetes-serviceaccounts"]).map((name) => `${object.namespace}/${name}`),
    createdAt: object.createdAt,
    wantsAddress: !external && !headless && addresses.length === 0,
  };
}

/** Clients of a headless Service choose the endpoint themselves; an ExternalName is another name for a host. */
function resolutionOf(external: boolean, headless: boolean): Resolution {
  return external ? "alias" : headless ? "none" : "static";
}

function declaredPorts(spec: ServiceSpec): readonly DeclaredPort[] {
  return spec.ports.flatMap((port) => {
    const name = port.name ?? "";
    const protocol = protocolOfPort({ name, number: port.port, transport: port.protocol ?? "TCP", appProtocol: port.appProtocol });
    return protocol === "UDP" ? [] : { name, number: port.port, protocol, targetPort: targetPortOf(port.targetPort, port.port) };
  });
}

/** A target port may be left out, be zero, or be a number in quotes; each means a number. */
function targetPortOf(target: number | string | undefined, port: number): number | string {
  if (target === undefined || target === 0 || target === "") return port;
  return typeof target === "string" && /^\d+$/.test(target) ? Number(target) : target;
}

/** Cluster addresses of both families, the primary one first. */
function clusterAddresses(spec: ServiceSpec): readonly string[] {
  const all = [...(spec.clusterIP === undefined ? [] : [spec.clusterIP]), ...spec.clusterIPs];
  return [...new Set(all.filter((address) => address !== "" && address !== "None").map(canonicalAddress))];
}

/** The annotation is a comma list: `*`, `.`, `~` or names of namespaces. */
function exportToOf(annotation: string | undefined): readonly string[] | undefined {
  const names = listOf(annotation);
  return names.length > 0 ? names : undefined;
}

const listOf = (annotation: string | undefined): readonly string[] =>
  (annotation ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
