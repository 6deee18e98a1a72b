import { SYSTEM_NAMESPACES } from "../inject/policy.ts";
import type { KubeObject, ResourceType } from "../kube/resource-type.ts";

/** Where the API server finds our webhooks: a Service of the cluster, or an address outside of it. */
export type WebhookPlace = { readonly service: { readonly name: string; readonly namespace: string } } | { readonly url: string };

export interface ConfigurationInput {
  /** `default` or the name of another. */
  readonly revision: string;
  /** Namespace of the control plane: never injected and never judged, or a control plane that is down could not come back. */
  readonly namespace: string;
  readonly place: WebhookPlace;
  /** Roots that our certificate is verified with, in PEM; undefined leaves the field to whoever fills it. */
  readonly caBundle: string | undefined;
  /** Whether requests are refused while we do not answer. Only once we have answered: before that, everything would stand still. */
  readonly failClosed: boolean;
  /** Where pods are sent to be injected, with what is told of their cluster; `/inject` unless told. */
  readonly injectionPath?: string;
  /** Injects pods of namespaces that say nothing, too. */
  readonly enableNamespacesByDefault: boolean;
}

const GROUP = "admissionregistration.k8s.io";
const API_VERSION = `${GROUP}/v1`;
export const MUTATING_CONFIGURATIONS: ResourceType = {
  group: GROUP,
  version: "v1",
  plural: "mutatingwebhookconfigurations",
  namespaced: false,
};
export const VALIDATING_CONFIGURATIONS: ResourceType = { ...MUTATING_CONFIGURATIONS, plural: "validatingwebhookconfigurations" };

const INJECTION_PATH = "/inject";
const INJECTION_TIMEOUT_SECONDS = 5;
const VALIDATION_TIMEOUT_SECONDS = 3;
const NAMESPACE_NAME = "kubernetes.io/metadata.name";
const REVISION = "istio.io/rev";
/** Label of configurations that stand for a tag. */
export const TAG = "istio.io/tag";
const INJECTION = "istio-injection";
const INJECT = "sidecar.istio.io/inject";

type Expression = { readonly key: string; readonly operator: string; readonly values?: readonly string[] };

const isOneOf = (key: string, ...values: string[]): Expression => ({ key, operator: "In", values });
const isNoneOf = (key: string, ...values: string[]): Expression => ({ key, operator: "NotIn", values });
const isAbsent = (key: string): Expression => ({ key, operator: "DoesNotExist" });

/** One way in which a namespace and a pod ask for a sidecar. */
interface Case {
  readonly name: string;
  readonly namespace: readonly Expression[];
  readonly pod: readonly Expression[];
}

/** By the label of the namespace, or of the pod where the namespace has none; the pod can always decline. */
const revisionCases = (revision: string): readonly Case[] => [
  { name: "rev.namespace", namespace: [isOneOf(REVISION, revision), isAbsent(INJECTION)], pod: [isNoneOf(INJECT, "false")] },
  {
    name: "rev.object",
    namespace: [isAbsent(REVISION), isAbsent(INJECTION)],
    pod: [isNoneOf(INJECT, "false"), isOneOf(REVISION, revision)],
  },
];

/** The older labels mean the default revision. */
const DEFAULT_CASES: readonly Case[] = [
  { name: "namespace", namespace: [isOneOf(INJECTION, "enabled")], pod: [isNoneOf(INJECT, "false")] },
  { name: "object", namespace: [isAbsent(INJECTION), isAbsent(REVISION)], pod: [isOneOf(INJECT, "true"), isAbsent(REVISION)] },
];

const AUTO_CASE: Case = {
  name: "auto",
  namespace: [isAbsent(INJECTION), isAbsent(REVISION), isNoneOf(NAMESPACE_NAME, ...SYSTEM_NAMESPACES)],
  pod: [isAbsent(INJECT), isAbsent(REVISION)],
};

/** `istiod`, `istiod-canary`: what the Service of a revision is called, and what follows it in other names. */
export const revisionSuffix = (revision: string): string => (revision === "" || revision === "default" ? "" : `-${revision}`);

/** Name of the configuration that injects for a revision; another namespace than Istio's usual one is part of it, as in Istio. */
export const injectorName = (revision: string, namespace: string): string =>
  `istio-sidecar-injector${revisionSuffix(revision)}${namespaceSuffix({ namespace })}`;

const namespaceSuffix = ({ namespace }: Pick<ConfigurationInput, "namespace">): string =>
  namespace === "istio-system" ? "" : `-${namespace}`;

/** Name of the configuration that judges objects. */
export const validatorName = (revision: string, namespace: string): string => `istio-validator${revisionSuffix(revision)}-${namespace}`;

/** The webhooks that inject pods, for a revision. */
export function mutatingWebhookConfiguration(input: ConfigurationInput): KubeObject {
  const revision = input.revision || "default";
  const isDefault = revision === "default";
  const cases = [
    ...revisionCases(revision),
    ...(isDefault ? DEFAULT_CASES : []),
    ...(isDefault && input.enableNamespacesByDefault ? [AUTO_CASE] : []),
  ];
  return {
    apiVersion: API_VERSION,
    kind: "MutatingWebhookConfiguration",
    metadata: { name: injectorName(revision, input.namespace), labels: { ...OWN_LABELS, app: "sidecar-injector", [REVISION]: revision } },
    webhooks: [...cases.map((one) => injector(one, input)), ownInjector(revision, input)],
  };
}

const OWN_INJECTOR = "own.sidecar-injector.istio.io";
const OWN_VALIDATOR = "own.validation.istio.io";

/** Whether a webhook is for our own namespace: such a one never refuses anything in our absence. */
export const isForOwnNamespace = (name: unknown): boolean => name === OWN_INJECTOR || name === OWN_VALIDATOR;

/**
 * In the namespace of the control plane nothing is injected by the labels of the namespace, and nothing there ever waits for us; only a pod that asks
 * for it itself, such as a gateway, is injected, and comes up as it is where we do not answer.
 */
function ownInjector(revision: string, input: ConfigurationInput): unknown {
  const pod =
    revision === "default" ? [isOneOf(INJECT, "true"), isAbsent(REVISION)] : [isNoneOf(INJECT, "false"), isOneOf(REVISION, revision)];
  return {
    ...injector({ name: "own", namespace: [], pod }, input),
    name: OWN_INJECTOR,
    namespaceSelector: { matchExpressions: [isOneOf(NAMESPACE_NAME, input.namespace)] },
    failurePolicy: "Ignore",
  };
}

/** The webhooks that inject for a tag: a name that points to a revision, so that namespaces need not be labelled anew when it moves. */
export function tagWebhookConfiguration(tag: string, input: ConfigurationInput): KubeObject {
  const base = mutatingWebhookConfiguration(input);
  const cases = [...revisionCases(tag), ...(tag === "default" ? DEFAULT_CASES : [])];
  return {
    ...base,
    metadata: {
      name: `istio-revision-tag-${tag}${namespaceSuffix(input)}`,
      labels: { ...base.metadata.labels, [TAG]: tag },
    },
    webhooks: cases.map((one) => injector(one, input)),
  };
}

/** The webhooks that judge what the tag `default` stands for: objects without a revision, which no other revision judges. */
export function defaultTagValidator(input: ConfigurationInput): KubeObject {
  const base = validatingWebhookConfiguration({ ...input, revision: "default" });
  return {
    ...base,
    metadata: {
      name: `istiod-default-validator${namespaceSuffix(input)}`,
      labels: { ...base.metadata.labels, [REVISION]: input.revision, [TAG]: "default" },
    },
  };
}

/** The revision that a configuration leads to. */
export const revisionLabel = ({ metadata }: KubeObject): string => metadata.labels?.[REVISION] ?? "";

const OWN_LABELS = { "app.kubernetes.io/name": "istiod", "operator.istio.io/component": "Pilot" };

function injector({ name, namespace, pod }: Case, input: ConfigurationInput): Readonly<Record<string, unknown>> {
  return {
    name: `${name}.sidecar-injector.istio.io`,
    clientConfig: clientConfig(input, input.injectionPath ?? INJECTION_PATH),
    rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"], scope: "Namespaced" }],
    namespaceSelector: { matchExpressions: [...namespace, isElsewhere(input)] },
    objectSelector: { matchExpressions: pod },
    failurePolicy: input.failClosed ? "Fail" : "Ignore",
    timeoutSeconds: INJECTION_TIMEOUT_SECONDS,
    reinvocationPolicy: "IfNeeded",
    sideEffects: "None",
    admissionReviewVersions: ["v1", "v1beta1"],
  };
}

/** The webhook that judges Istio's kinds; objects of another revision are another control plane's to judge. */
export function validatingWebhookConfiguration(input: ConfigurationInput): KubeObject {
  const revision = input.revision || "default";
  const common = {
    clientConfig: clientConfig(input, "/validate"),
    rules: [
      {
        operations: ["CREATE", "UPDATE"],
        apiGroups: ["security.istio.io", "networking.istio.io", "telemetry.istio.io", "extensions.istio.io"],
        apiVersions: ["*"],
        resources: ["*"],
        scope: "*",
      },
    ],
    namespaceSelector: { matchExpressions: [isElsewhere(input)] },
    failurePolicy: input.failClosed ? "Fail" : "Ignore",
    timeoutSeconds: VALIDATION_TIMEOUT_SECONDS,
    sideEffects: "None",
    admissionReviewVersions: ["v1", "v1beta1"],
  };
  const unlabelled = { ...common, name: "validation.istio.io", objectSelector: { matchExpressions: [isAbsent(REVISION)] } };
  const own = {
    ...common,
    name: OWN_VALIDATOR,
    namespaceSelector: { matchExpressions: [isOneOf(NAMESPACE_NAME, input.namespace)] },
    objectSelector: { matchExpressions: [revision === "default" ? isAbsent(REVISION) : isOneOf(REVISION, revision)] },
    failurePolicy: "Ignore",
  };
  return {
    apiVersion: API_VERSION,
    kind: "ValidatingWebhookConfiguration",
    metadata: {
      name: validatorName(revision, input.namespace),
      labels: { ...OWN_LABELS, app: "istiod", istio: "istiod", [REVISION]: revision },
    },
    webhooks: [
      { ...common, name: "rev.validation.istio.io", objectSelector: { matchExpressions: [isOneOf(REVISION, revision)] } },
      ...(revision === "default" ? [unlabelled] : []),
      own,
    ],
  };
}

function clientConfig({ place, caBundle }: ConfigurationInput, path: string): unknown {
  const bundle = caBundle === undefined ? {} : { caBundle: Buffer.from(caBundle).toString("base64") };
  return "url" in place
    ? { url: `${place.url.replace(/\/$/, "")}${path}`, ...bundle }
    : { service: { ...place.service, path, port: 443 }, ...bundle };
}

/** Not in the namespace of the control plane itself. */
const isElsewhere = ({ namespace }: ConfigurationInput): Expression => isNoneOf(NAMESPACE_NAME, namespace);
