import type { JsonValue } from "@bufbuild/protobuf";
import type { ConfigObject } from "../../config/object.ts";
import type { WasmInput } from "../../envoy/extension/wasm.ts";
import { EnvValueSource, FailStrategy, PluginType, PullPolicy } from "../../gen/istio/extensions/v1alpha1/shared_pb.js";
import {
  TrafficExtension_ExecutionPhase as Phase,
  type TrafficExtension,
  type WasmConfig,
} from "../../gen/istio/extensions/v1alpha1/traffic_extension_pb.js";
import { PluginPhase, type WasmPlugin } from "../../gen/istio/extensions/v1alpha1/wasm_pb.js";
import type { WorkloadMode } from "../../gen/istio/type/v1beta1/selector_pb.js";

export type ExtensionObject = ConfigObject<TrafficExtension> | ConfigObject<WasmPlugin>;

/** An extension as far as filter chains go: where it stands and which traffic it is for. */
export interface ExtensionRule {
  /** Name of the filter, and of the configuration it asks for. */
  readonly name: string;
  readonly filter: "http" | "network";
  readonly phase: "authn" | "authz" | "stats" | "none";
  /** Higher goes first within a phase; undefined is lower than any. */
  readonly priority: number | undefined;
  /** Traffic it is for; empty = all. */
  readonly matches: readonly { readonly mode: WorkloadMode; readonly ports: readonly number[] }[];
  readonly code: "wasm" | { readonly lua: string };
}

const PHASES = {
  [Phase.UNSPECIFIED]: "none",
  [Phase.AUTHN]: "authn",
  [Phase.AUTHZ]: "authz",
  [Phase.STATS]: "stats",
} as const satisfies Record<Phase, ExtensionRule["phase"]>;

const PLUGIN_PHASES = {
  [PluginPhase.UNSPECIFIED_PHASE]: "none",
  [PluginPhase.AUTHN]: "authn",
  [PluginPhase.AUTHZ]: "authz",
  [PluginPhase.STATS]: "stats",
} as const satisfies Record<PluginPhase, ExtensionRule["phase"]>;

const isPlugin = (object: ExtensionObject): object is ConfigObject<WasmPlugin> => object.kind === "WasmPlugin";

/** Istio's names: dumps and EnvoyFilters know them. */
const nameOf = ({ kind, namespace, name }: ExtensionObject): string => `extensions.istio.io/${kind.toLowerCase()}/${namespace}.${name}`;

/** What one object asks for. */
export function extensionRule(object: ExtensionObject): ExtensionRule {
  const matches = object.spec.match.map(({ mode, ports }) => ({ mode, ports: ports.map(({ number }) => number) }));
  const common = { name: nameOf(object), priority: object.spec.priority, matches };
  if (isPlugin(object)) return { ...common, filter: filterOf(object.spec), phase: PLUGIN_PHASES[object.spec.phase], code: "wasm" };
  const { filterConfig, phase } = object.spec;
  if (filterConfig.case === "lua") return { ...common, filter: "http", phase: PHASES[phase], code: { lua: filterConfig.value.inlineCode } };
  return {
    ...common,
    filter: filterConfig.value === undefined ? "http" : filterOf(filterConfig.value),
    phase: PHASES[phase],
    code: "wasm",
  };
}

const filterOf = ({ type }: Pick<WasmConfig, "type">): ExtensionRule["filter"] => (type === PluginType.NETWORK ? "network" : "http");

const ON_FAILURE = {
  [FailStrategy.FAIL_CLOSE]: "close",
  [FailStrategy.FAIL_OPEN]: "open",
  [FailStrategy.FAIL_RELOAD]: "reload",
} as const satisfies Record<FailStrategy, WasmInput["onFailure"]>;

/** The Wasm module an object names; undefined where it is none. */
export function wasmInput(object: ExtensionObject): WasmInput | undefined {
  const wasm = isPlugin(object) ? object.spec : object.spec.filterConfig.case === "wasm" ? object.spec.filterConfig.value : undefined;
  if (wasm === undefined) return undefined;
  const settings = wasm.pluginConfig ?? {};
  return {
    name: nameOf(object),
    plugin: `${object.namespace}.${object.name}`,
    filter: filterOf(wasm),
    rootId: wasm.pluginName,
    configuration: Object.keys(settings).length === 0 ? undefined : sortedJson(settings),
    code: codeOf(wasm),
    onFailure: ON_FAILURE[wasm.failStrategy],
    ...environmentOf(object, wasm),
  };
}

/** A URL without a scheme is an image of a registry. */
function codeOf({ url, sha256 }: Pick<WasmConfig, "url" | "sha256">): WasmInput["code"] {
  if (url.startsWith("file://")) return { file: url.slice("file://".length) };
  return { url: /^[a-zA-Z][-+.a-zA-Z0-9]*:\/\//.test(url) ? url : `oci://${url}`, sha256 };
}

/** The variable that names the login for the registry; what is sent holds the login itself, since the agent is to use it. */
export const PULL_SECRET = "ISTIO_META_WASM_IMAGE_PULL_SECRET";

/**
 * Variables the module sees, and three that are for the agent alone, under Istio's names: it fetches the module by them and takes them
 * away before Envoy sees them. The secret is named here, never shown.
 */
function environmentOf(
  { namespace, hash }: ExtensionObject,
  { vmConfig, imagePullPolicy, imagePullSecret }: Pick<WasmConfig, "vmConfig" | "imagePullPolicy" | "imagePullSecret">,
): Pick<WasmInput, "environment" | "hostEnvironment"> {
  const variables = vmConfig?.env ?? [];
  const policy = PULL_POLICY[imagePullPolicy];
  const secret = imagePullSecret.replace(/^kubernetes:\/\//, "").replace(/^.*\//, "");
  return {
    environment: {
      ...(secret !== "" && { [PULL_SECRET]: `kubernetes://${namespace}/${secret}` }),
      ...(policy !== undefined && { ISTIO_META_WASM_IMAGE_PULL_POLICY: policy }),
      ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION: hash,
      ...Object.fromEntries(
        variables.filter(({ valueFrom }) => valueFrom === EnvValueSource.INLINE).map(({ name, value }) => [name, value]),
      ),
    },
    hostEnvironment: variables.filter(({ valueFrom }) => valueFrom === EnvValueSource.HOST).map(({ name }) => name),
  };
}

/** Numbers of enums may be ones that nobody knows yet: those say nothing, like none. */
const PULL_POLICY: Readonly<Record<number, string | undefined>> = {
  [PullPolicy.IfNotPresent]: "IfNotPresent",
  [PullPolicy.Always]: "Always",
};

function sortedJson(value: JsonValue): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
