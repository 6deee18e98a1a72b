import { ANNOTATION } from "../annotations.ts";
import type { Fields } from "../pod.ts";
import { annotation, hasAnnotation, interceptionMode, statusPort, type TemplateInput } from "../template-input.ts";

/** What of a pod's traffic goes through the proxy, as annotations and values say. */
export interface Interception {
  readonly mode: string;
  readonly includeOutboundIpRanges: string;
  readonly excludeOutboundIpRanges: string;
  readonly includeInboundPorts: string;
  readonly excludeInboundPorts: string;
  /** Undefined where nobody said anything: then nothing is written either. */
  readonly includeOutboundPorts: string | undefined;
  readonly excludeOutboundPorts: string | undefined;
  readonly rerouteInterfaces: string | undefined;
  readonly excludeInterfaces: string | undefined;
}

/** What the pod's annotations say of interception, over what the installation's values do. */
export function interceptionOf(input: TemplateInput): Interception {
  const { proxy } = input.values.global;
  const { annotations = {} } = input.pod.metadata;
  const said = (name: string, value: string): string | undefined =>
    hasAnnotation(input, name) || value !== "" ? annotation(input, name, value) : undefined;
  return {
    mode: interceptionMode(input),
    includeOutboundIpRanges: annotation(input, ANNOTATION.includeOutboundIpRanges, proxy.includeIPRanges),
    excludeOutboundIpRanges: annotation(input, ANNOTATION.excludeOutboundIpRanges, proxy.excludeIPRanges),
    includeInboundPorts: annotation(input, ANNOTATION.includeInboundPorts, proxy.includeInboundPorts),
    excludeInboundPorts: withPort(annotation(input, ANNOTATION.excludeInboundPorts, proxy.excludeInboundPorts), statusPort(input)),
    includeOutboundPorts: said(ANNOTATION.includeOutboundPorts, proxy.includeOutboundPorts),
    excludeOutboundPorts: said(ANNOTATION.excludeOutboundPorts, proxy.excludeOutboundPorts),
    rerouteInterfaces: annotations[ANNOTATION.rerouteInterfaces] ?? annotations[ANNOTATION.kubevirtInterfaces],
    excludeInterfaces: annotations[ANNOTATION.excludeInterfaces],
  };
}

/** A list of ports with one more, unless it is there already or is 0. */
export function withPort(ports: string, port: string): string {
  const extra = port.trim();
  if (extra === "" || extra === "0") return ports;
  const list = ports.split(",").map((one) => one.trim());
  return list.includes(extra) ? ports : [...list.filter((one) => one !== ""), extra].join(",");
}

/** Annotations by which the CNI plugin learns the same, where it does the work of the init container. */
export function cniAnnotations(input: TemplateInput): Fields {
  const { cni } = input.values.pilot;
  if (!cni.enabled) return {};
  const { annotations = {} } = input.pod.metadata;
  const it = interceptionOf(input);
  const entries: readonly (readonly [string, string | undefined])[] = [
    [ANNOTATION.multusNetworks, cni.provider === "multus" ? withNetwork(annotations[ANNOTATION.multusNetworks] ?? "") : undefined],
    [ANNOTATION.interceptionMode, it.mode],
    [ANNOTATION.includeOutboundIpRanges, it.includeOutboundIpRanges || undefined],
    [ANNOTATION.excludeOutboundIpRanges, it.excludeOutboundIpRanges || undefined],
    [ANNOTATION.includeInboundPorts, it.includeInboundPorts],
    [ANNOTATION.excludeInboundPorts, it.excludeInboundPorts],
    [ANNOTATION.includeOutboundPorts, it.includeOutboundPorts],
    [ANNOTATION.excludeOutboundPorts, it.excludeOutboundPorts],
  ];
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

const CNI_NETWORK = { namespace: "default", name: "istio-cni" };

/** Networks that Multus attaches, with that of the CNI plugin: a list of names, or JSON. JSON that cannot be read is left alone. */
export function withNetwork(networks: string): string {
  const ours = `${CNI_NETWORK.namespace}/${CNI_NETWORK.name}`;
  if (networks === "") return ours;
  const end = networks.lastIndexOf("]");
  if (end === -1) return networks.split(",").some((one) => one.trim() === ours) ? networks : `${networks}, ${ours}`;
  try {
    const list = JSON.parse(networks) as readonly { readonly name?: string; readonly namespace?: string }[];
    const isThere = list.some(({ name, namespace }) => name === CNI_NETWORK.name && namespace === CNI_NETWORK.namespace);
    const entry = `, {"name": "${CNI_NETWORK.name}", "namespace": "${CNI_NETWORK.namespace}"}`;
    return isThere ? networks : `${networks.slice(0, end)}${entry}${networks.slice(end)}`;
  } catch {
    return networks;
  }
}
