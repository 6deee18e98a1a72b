import type { MeshConfig } from "../gen/istio/mesh/v1alpha1/mesh_config_pb.js";
import type { ProxyConfig as ProxyConfigObject } from "../gen/istio/networking/v1beta1/proxy_config_pb.js";
import type { InjectionConfig } from "./injection-config.ts";
import type { Owner } from "./owner.ts";
import type { Pod } from "./pod.ts";
import type { TemplateSet } from "./template-set.ts";
import type { InjectionValues } from "./values.ts";

/** What holds for all pods until somebody changes it. */
export interface InjectionSettings {
  readonly config: InjectionConfig;
  readonly templates: TemplateSet;
  readonly values: InjectionValues;
  readonly mesh: MeshConfig;
  readonly revision: string;
  readonly compliancePolicy: string;
}

/** One pod to be injected, and what is known about where it stands. */
export interface InjectionRequest {
  readonly pod: Pod;
  readonly namespace: string;
  /** The workload it belongs to; found from the pod where nobody knows better. */
  readonly owner: Owner;
  readonly native: boolean;
  /** ProxyConfig objects that apply to it, the one that counts most last. */
  readonly proxyConfigs: readonly ProxyConfigObject[];
  /** Variables that the address of the webhook carries, such as cluster and network. */
  readonly variables: Readonly<Record<string, string>>;
  readonly user: { readonly uid: number; readonly gid: number };
}

/** A pod with its sidecar, and what of its annotations has no effect; or why it cannot have one. */
export type InjectionResult = { readonly pod: Pod; readonly warnings: readonly string[] } | { readonly faults: readonly string[] };
