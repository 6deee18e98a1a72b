import { type Fields, isFields } from "./pod.ts";

/** Requests and limits by resource; null takes one away. */
export type Resources = Readonly<Record<string, Readonly<Record<string, string | number | null>> | null>>;

/**
 * Settings of injection, under the names of Istio's Helm values, so that the `values` of an existing installation work. Those that no built-in
 * template reads are kept for templates of users.
 */
export interface InjectionValues {
  readonly revision: string;
  readonly global: {
    readonly hub: string;
    readonly tag: string;
    readonly variant: string;
    readonly imagePullPolicy: string;
    readonly imagePullSecrets: readonly string[];
    readonly istioNamespace: string;
    readonly caAddress: string;
    readonly caName: string;
    readonly pilotCertProvider: string;
    readonly network: string;
    readonly meshID: string;
    readonly logAsJson: boolean;
    readonly mountMtlsCerts: boolean;
    readonly nativeNftables: boolean;
    readonly trustBundleName: string;
    readonly logging: { readonly level: string };
    readonly multiCluster: { readonly clusterName: string };
    readonly proxy: ProxyValues;
    readonly proxy_init: { readonly image: string; readonly forceApplyIptables: boolean };
    readonly sds: { readonly token: { readonly aud: string } };
    readonly sts: { readonly servicePort: number };
  };
  readonly pilot: {
    readonly cni: { readonly enabled: boolean; readonly provider: string };
    readonly env: Readonly<Record<string, unknown>>;
    readonly crlConfigMapName: string;
  };
  readonly gateways: { readonly securityContext: Fields; readonly seccompProfile: Fields };
  readonly sidecarInjectorWebhook: { readonly rewriteAppHTTPProbe: boolean; readonly enableNamespacesByDefault: boolean };
}

export interface ProxyValues {
  readonly image: string;
  readonly clusterDomain: string;
  readonly logLevel: string;
  readonly componentLogLevel: string;
  readonly outlierLogPath: string;
  readonly privileged: boolean;
  readonly capNetBindService: boolean;
  readonly holdApplicationUntilProxyStarts: boolean;
  readonly statusPort: number;
  readonly readinessInitialDelaySeconds: number;
  readonly readinessPeriodSeconds: number;
  readonly readinessFailureThreshold: number;
  readonly startupProbe: { readonly enabled: boolean; readonly failureThreshold: number };
  readonly includeIPRanges: string;
  readonly excludeIPRanges: string;
  readonly includeInboundPorts: string;
  readonly excludeInboundPorts: string;
  readonly includeOutboundPorts: string;
  readonly excludeOutboundPorts: string;
  readonly tracer: string;
  readonly lifecycle: Fields;
  readonly seccompProfile: Fields;
  readonly resources: Resources;
}

const PROXY: ProxyValues = {
  image: "proxyv2",
  clusterDomain: "cluster.local",
  logLevel: "warning",
  componentLogLevel: "misc:error",
  outlierLogPath: "",
  privileged: false,
  capNetBindService: false,
  holdApplicationUntilProxyStarts: false,
  statusPort: 15_020,
  readinessInitialDelaySeconds: 0,
  readinessPeriodSeconds: 15,
  readinessFailureThreshold: 4,
  startupProbe: { enabled: true, failureThreshold: 600 },
  includeIPRanges: "*",
  excludeIPRanges: "",
  includeInboundPorts: "*",
  excludeInboundPorts: "",
  includeOutboundPorts: "",
  excludeOutboundPorts: "",
  tracer: "none",
  lifecycle: {},
  seccompProfile: {},
  resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { cpu: "2000m", memory: "1024Mi" } },
};

/** What holds where nobody says anything: Istio's defaults, with the image of this project. */
export const DEFAULT_VALUES: InjectionValues = {
  revision: "",
  global: {
    hub: "istio-ts",
    tag: "latest",
    variant: "",
    imagePullPolicy: "",
    imagePullSecrets: [],
    istioNamespace: "istio-system",
    caAddress: "",
    caName: "",
    pilotCertProvider: "istiod",
    network: "",
    meshID: "",
    logAsJson: false,
    mountMtlsCerts: false,
    nativeNftables: false,
    trustBundleName: "",
    logging: { level: "default:info" },
    multiCluster: { clusterName: "" },
    proxy: PROXY,
    proxy_init: { image: "proxyv2", forceApplyIptables: false },
    sds: { token: { aud: "istio-ca" } },
    sts: { servicePort: 0 },
  },
  pilot: { cni: { enabled: false, provider: "default" }, env: {}, crlConfigMapName: "" },
  gateways: { securityContext: {}, seccompProfile: {} },
  sidecarInjectorWebhook: { rewriteAppHTTPProbe: true, enableNamespacesByDefault: false },
};

/** Values that were read, or what is wrong with them. */
export type ValuesRead = { readonly values: InjectionValues } | { readonly faults: readonly string[] };

/** Puts what a user wrote over the defaults. A field of a wrong type is a fault with its path; fields nobody knows are kept. */
export function readValues(written: unknown): ValuesRead {
  if (written !== undefined && written !== null && !isFields(written)) return { faults: ["the values must be an object"] };
  const faults: string[] = [];
  const values = layered(DEFAULT_VALUES as unknown as Fields, written ?? {}, { path: "", faults });
  return faults.length === 0 ? { values: values as unknown as InjectionValues } : { faults };
}

interface Place {
  readonly path: string;
  readonly faults: string[];
}

function layered(base: Fields, over: Fields, { path, faults }: Place): Fields {
  const result: Fields = { ...base };
  for (const [name, value] of Object.entries(over)) {
    const below = { path: path === "" ? name : `${path}.${name}`, faults };
    // Of open objects (resources, what a user adds) a null stays: it says that something is to be left out.
    if (value === null && name in base && !isOpen(below.path)) continue;
    result[name] = isFields(base[name]) && isFields(value) ? layered(base[name], value, below) : fitted(base[name], value, below);
  }
  return result;
}

const OPEN = ["global.proxy.resources", "global.proxy.lifecycle", "pilot.env", "gateways.securityContext"];
const isOpen = (path: string): boolean => OPEN.some((open) => path.startsWith(`${open}.`));

/** The value in the type of its default; a number where a text is wanted (`tag: 1.28`) is taken as written. */
function fitted(base: unknown, value: unknown, { path, faults }: Place): unknown {
  if (base === undefined || base === null || isOpen(path)) return value;
  if (typeof base === "string" && (typeof value === "number" || typeof value === "boolean")) return String(value);
  if (typeof base === "number" && typeof value === "string" && /^\d{1,9}$/.test(value)) return Number(value);
  if (typeof base === "boolean" && (value === "true" || value === "false")) return value === "true";
  if (typeof value === typeof base && Array.isArray(value) === Array.isArray(base)) return value;
  faults.push(`${path} must be ${WANTED[Array.isArray(base) ? "list" : typeof base] ?? "an object"}`);
  return base;
}

const WANTED: Readonly<Record<string, string>> = { string: "a text", number: "a whole number", boolean: "true or false", list: "a list" };
