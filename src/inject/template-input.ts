import type { MeshConfig } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import { type ProxyConfig, ProxyConfig_InboundInterceptionMode } from "../gen/istio/mesh/v1alpha1/proxy_config_pb.js";
import { ANNOTATION } from "./annotations.ts";
import type { Owner } from "./owner.ts";
import type { Pod, PodOverlay } from "./pod.ts";
import type { InjectionValues } from "./values.ts";

/** All that may influence what a template gives. */
export interface TemplateInput {
  /** The pod without what an earlier injection added. */
  readonly pod: Pod;
  readonly owner: Owner;
  readonly namespace: string;
  readonly values: InjectionValues;
  readonly mesh: MeshConfig;
  /** The mesh's defaults with what ProxyConfig objects and the pod's annotation say over them. */
  readonly proxyConfig: ProxyConfig;
  /** What those say themselves, as JSON: all of ProxyConfig that the pod carries, the rest comes when it runs. */
  readonly ownProxyConfig: Readonly<Record<string, unknown>>;
  /** What an earlier injection told the proxy of the pod's ports. */
  readonly earlierPorts?: string;
  readonly revision: string;
  /** The proxy is an init container that keeps running, so that it starts before the application and Jobs can end. */
  readonly native: boolean;
  readonly images: { readonly proxy: string; readonly init: string };
  readonly user: { readonly uid: number; readonly gid: number };
  readonly compliancePolicy: string;
}

/** A built-in template: gives a part of a pod. Pure. */
export type BuiltInTemplate = (input: TemplateInput) => PodOverlay;

/** An annotation of the pod, or what holds without it. */
export const annotation = ({ pod }: TemplateInput, name: string, fallback: string | number | boolean): string =>
  pod.metadata.annotations?.[name] ?? String(fallback);

/** Whether the pod says it, were it only the empty text. */
export const hasAnnotation = ({ pod }: TemplateInput, name: string): boolean => pod.metadata.annotations?.[name] !== undefined;

/** How connections reach the proxy: REDIRECT, TPROXY or NONE. */
export const interceptionMode = (input: TemplateInput): string =>
  annotation(input, ANNOTATION.interceptionMode, MODES[input.proxyConfig.interceptionMode] ?? "REDIRECT");

const MODES: Readonly<Record<number, string>> = {
  [ProxyConfig_InboundInterceptionMode.REDIRECT]: "REDIRECT",
  [ProxyConfig_InboundInterceptionMode.TPROXY]: "TPROXY",
  [ProxyConfig_InboundInterceptionMode.NONE]: "NONE",
};

/** Port of the agent; 0 where it is switched off. */
export const statusPort = (input: TemplateInput): string =>
  annotation(input, ANNOTATION.statusPort, input.values.global.proxy.statusPort).trim();

/** Where certificates are signed: the control plane of this revision, unless told otherwise. */
export const caAddress = ({ values }: TemplateInput): string => values.global.caAddress || istiodAddress(values);

/** Where configuration comes from: what the pod or the mesh says, else the control plane of this revision. */
export function discoveryAddress({ values, proxyConfig }: TemplateInput): string {
  const said = proxyConfig.discoveryAddress;
  return said === "" || said === UNREVISIONED ? istiodAddress(values) : said;
}

/** Default of MeshConfig, which knows of no revision or namespace. */
const UNREVISIONED = "istiod.istio-system.svc:15012";

const istiodAddress = ({ revision, global }: InjectionValues): string =>
  `istiod${revision === "" || revision === "default" ? "" : `-${revision}`}.${global.istioNamespace}.svc:15012`;
