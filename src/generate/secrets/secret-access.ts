import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { matchesLabels } from "../../base/labels.ts";
import type { ConfigObject } from "../../config/object.ts";
import { ROOTS_SUFFIX } from "../../credentials/credential-source.ts";
import { type CredentialHolder, credential, credentialRoots } from "../../envoy/tls/index.ts";
import type { ClientTLSSettings, DestinationRule, TrafficPolicy } from "../../gen/istio/networking/v1alpha3/destination_rule_pb.js";
import type { ProxyView } from "../../model/proxy.ts";
import type { GenerateContext } from "../context.ts";
import type { StoredRequest } from "./secret-request.ts";

/** Who asks: what it has proved, not what it says. */
export type SecretReader = Pick<ProxyView, "namespace" | "serviceAccount" | "clusterId">;

/**
 * Whether a service account may read the secrets of its own namespace. Configuration in files knows no such permissions: there the namespace is
 * the border. Asked at every push, so an answer may change; undefined while it is not known yet.
 */
export type MayReadSecrets = (reader: SecretReader) => boolean | undefined;

/** All may read the secrets of their own namespace, as where permissions are not known. */
export const NAMESPACE_IS_THE_BORDER: MayReadSecrets = () => true;

/** It is not known yet whether it may be given: nothing is said of it until it is. */
export const UNDECIDED = Symbol("undecided");

/** Decides who is given what. Answers with the reason why not; undefined lets it be given. */
export type SecretRefusal = (view: ProxyView, name: string, request: StoredRequest) => string | typeof UNDECIDED | undefined;

/**
 * Certificates with their keys go to gateways of their namespace whose account may read secrets there, to gateways of other namespaces under
 * a ReferenceGrant, and to sidecars where a DestinationRule of their namespace selects them and names it. CAs are no secrets, but still those of
 * the namespace; one in a ConfigMap is for everybody, as in Istio. Nothing goes to a caller that has not proved who it is.
 */
export function defineSecretAccess(ctx: Pick<GenerateContext, "engine" | "inputs">, mayRead: MayReadSecrets): SecretRefusal {
  const granted = defineGrants(ctx);
  const named = defineNamedCredentials(ctx);
  const refuseOwn: SecretRefusal = (view, name, request) => {
    if (request.is === "roots") return undefined;
    if (view.type !== "router" && !named({ namespace: view.namespace, labels: view.labels }).includes(name))
      return "a sidecar is given only what a DestinationRule of its namespace names that selects it by workloadSelector";
    const allowed = mayRead(view);
    if (allowed === undefined) return UNDECIDED;
    return allowed ? undefined : `service account ${view.namespace}/${view.serviceAccount} may not read secrets of its namespace`;
  };
  return (view, name, request) => {
    if (!view.proven)
      return "the proxy has not proved who it is; secrets are served on the secure port to callers with a token or certificate";
    if (request.in === "ConfigMap") return undefined;
    if (request.namespace === view.namespace) return refuseOwn(view, name, request);
    if (request.grantable && view.type === "router" && granted({ to: request, from: view.namespace })) return undefined;
    return request.grantable
      ? `it is of another namespace, and no ReferenceGrant in ${request.namespace} lets gateways of ${view.namespace} refer to it`
      : "it is of another namespace";
  };
}

interface GrantQuery {
  readonly to: Pick<StoredRequest, "namespace" | "name">;
  readonly from: string;
}

/** Gateways of either API, since one proxy runs both. */
const GATEWAY_GROUPS: ReadonlySet<JsonValue | undefined> = new Set(["gateway.networking.k8s.io", "networking.istio.io"]);

/** Whether a ReferenceGrant beside a Secret lets Gateways of a namespace refer to it. */
function defineGrants({ engine, inputs }: Pick<GenerateContext, "engine" | "inputs">): (query: GrantQuery) => boolean {
  return engine.query<GrantQuery, boolean>({
    name: "secretGranted",
    id: ({ to, from }) => `${to.namespace}/${to.name}|${from}`,
    compute: ({ to, from }) => {
      const names = new Set<JsonValue>([to.name, to.name.endsWith(ROOTS_SUFFIX) ? to.name.slice(0, -ROOTS_SUFFIX.length) : to.name]);
      return inputs.objects.list("kindNamespace", `ReferenceGrant/${to.namespace}`).some(({ spec }) => {
        const grant = spec as JsonObject;
        return (
          entriesOf(grant.from).some(
            ({ group, kind, namespace }) => GATEWAY_GROUPS.has(group) && kind === "Gateway" && namespace === from,
          ) &&
          entriesOf(grant.to).some(
            ({ group, kind, name }) =>
              (group ?? "") === "" && kind === "Secret" && (name === undefined || name === null || name === "" || names.has(name)),
          )
        );
      });
    },
  });
}

const entriesOf = (list: JsonValue | undefined): readonly JsonObject[] => (Array.isArray(list) ? list.filter(isObject) : []);

const isObject = (value: JsonValue): value is JsonObject => typeof value === "object" && value !== null && !Array.isArray(value);

interface WorkloadQuery {
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}

/** Names of the secrets that DestinationRules name to the workloads they select. */
function defineNamedCredentials({
  engine,
  inputs,
}: Pick<GenerateContext, "engine" | "inputs">): (query: WorkloadQuery) => readonly string[] {
  return engine.query<WorkloadQuery, readonly string[]>({
    name: "namedCredentials",
    id: ({ namespace, labels }) => `${namespace}|${JSON.stringify(Object.entries(labels).sort())}`,
    compute: ({ namespace, labels }) => {
      const rules = inputs.objects.list("kindNamespace", `DestinationRule/${namespace}`) as readonly ConfigObject<DestinationRule>[];
      const names = rules
        .filter(({ spec }) => spec.workloadSelector !== undefined && matchesLabels(spec.workloadSelector.matchLabels, labels))
        .flatMap(({ spec }) => [spec.trafficPolicy, ...spec.subsets.map(({ trafficPolicy }) => trafficPolicy)].flatMap(tlsOf))
        .filter(({ credentialName }) => credentialName !== "")
        .flatMap(({ credentialName }) => [credential(credentialName, HERE), credentialRoots(credentialName, HERE)])
        .filter((name) => typeof name === "string");
      return [...new Set(names)].sort();
    },
  });
}

/** Credentials that the control plane itself is asked for: those of other servers are none of its business. */
const HERE: CredentialHolder = { socket: false };

const tlsOf = (policy: TrafficPolicy | undefined): readonly ClientTLSSettings[] =>
  policy === undefined ? [] : [policy.tls, ...policy.portLevelSettings.map(({ tls }) => tls)].filter((tls) => tls !== undefined);
