import type { AttributeMatch, PermissionAttribute, PrincipalAttribute, RuleInput } from "../../envoy/filters/rbac/rbac-input.ts";
import type { Condition, Operation, Rule, Source } from "../../gen/istio/security/v1beta1/authorization_policy_pb.js";
import { expandedTrustDomains, withTrustDomainAliases } from "./trust-domains.ts";

/** What a rule means besides its own words. */
export interface RuleContext {
  /** Namespace of the policy: that of service accounts written without one. */
  readonly namespace: string;
  /** The mesh's trust domain and its aliases. */
  readonly trustDomains: readonly string[];
}

type SourceMatch = AttributeMatch<PrincipalAttribute>;
type OperationMatch = AttributeMatch<PermissionAttribute>;

/** Reads one rule of an AuthorizationPolicy. Conditions hold for all its sources and operations, so each gets those it can judge. */
export function ruleInput(rule: Rule, context: RuleContext): RuleInput {
  const conditions = rule.when.map(conditionMatch);
  const ofSources = conditions.flatMap((one) => ("source" in one ? [resolved(one.source, context)] : []));
  const ofOperations = conditions.flatMap((one) => ("operation" in one ? [one.operation] : []));
  const sources = rule.from.map(({ source }) => [...sourceMatches(source).map((match) => resolved(match, context)), ...ofSources]);
  const operations = rule.to.map(({ operation }) => [...operationMatches(operation), ...ofOperations]);
  return {
    sources: sources.length > 0 ? sources : [ofSources],
    operations: operations.length > 0 ? operations : [ofOperations],
  };
}

const said = <A>(matches: readonly AttributeMatch<A>[]): readonly AttributeMatch<A>[] =>
  matches.filter(({ values, notValues }) => values.length > 0 || notValues.length > 0);

function sourceMatches(source: Source | undefined): readonly SourceMatch[] {
  if (source === undefined) return [];
  return said<PrincipalAttribute>([
    { attribute: { kind: "principal" }, values: source.principals, notValues: source.notPrincipals },
    { attribute: { kind: "requestPrincipal" }, values: source.requestPrincipals, notValues: source.notRequestPrincipals },
    { attribute: { kind: "serviceAccount" }, values: source.serviceAccounts, notValues: source.notServiceAccounts },
    { attribute: { kind: "trustDomain" }, values: source.trustDomains, notValues: source.notTrustDomains },
    { attribute: { kind: "namespace" }, values: source.namespaces, notValues: source.notNamespaces },
    { attribute: { kind: "clientAddress" }, values: source.remoteIpBlocks, notValues: source.notRemoteIpBlocks },
    { attribute: { kind: "peerAddress" }, values: source.ipBlocks, notValues: source.notIpBlocks },
  ]);
}

function operationMatches(operation: Operation | undefined): readonly OperationMatch[] {
  if (operation === undefined) return [];
  return said<PermissionAttribute>([
    { attribute: { kind: "host" }, values: operation.hosts, notValues: operation.notHosts },
    { attribute: { kind: "method" }, values: operation.methods, notValues: operation.notMethods },
    { attribute: { kind: "path" }, values: operation.paths, notValues: operation.notPaths },
    { attribute: { kind: "port" }, values: operation.ports, notValues: operation.notPorts },
  ]);
}

/** Identities as they stand in certificates: with the aliases of their trust domain, accounts with their namespace. */
function resolved(match: SourceMatch, { namespace, trustDomains }: RuleContext): SourceMatch {
  const each = (change: (texts: readonly string[]) => readonly string[]): SourceMatch => ({
    ...match,
    values: change(match.values),
    notValues: change(match.notValues),
  });
  if (match.attribute.kind === "principal") return each((texts) => withTrustDomainAliases(texts, trustDomains));
  if (match.attribute.kind === "trustDomain") return each((texts) => expandedTrustDomains(texts, trustDomains));
  if (match.attribute.kind !== "serviceAccount") return match;
  return each((texts) => texts.map((text) => (text.includes("/") ? text : `${namespace}/${text}`)));
}

const SOURCE_KEYS: Readonly<Record<string, PrincipalAttribute>> = {
  "source.ip": { kind: "peerAddress" },
  "remote.ip": { kind: "clientAddress" },
  "source.namespace": { kind: "namespace" },
  "source.principal": { kind: "principal" },
  "source.serviceAccount": { kind: "serviceAccount" },
  "source.trustDomain": { kind: "trustDomain" },
  "request.auth.principal": { kind: "requestPrincipal" },
  "request.auth.audiences": { kind: "claim", path: ["aud"] },
  "request.auth.presenter": { kind: "claim", path: ["azp"] },
};

const OPERATION_KEYS: Readonly<Record<string, PermissionAttribute>> = {
  "destination.ip": { kind: "destinationAddress" },
  "destination.port": { kind: "port" },
  "connection.sni": { kind: "serverName" },
};

const CLAIMS = "request.auth.claims";
const HEADERS = "request.headers";
const EXPERIMENTAL = "experimental.";

/** The attribute a condition is about, by its key in Istio's "Authorization Policy Conditions". */
function conditionMatch({ key, values, notValues }: Condition): { readonly source: SourceMatch } | { readonly operation: OperationMatch } {
  const source = SOURCE_KEYS[key];
  if (source !== undefined) return { source: { attribute: source, values, notValues } };
  const operation = OPERATION_KEYS[key];
  if (operation !== undefined) return { operation: { attribute: operation, values, notValues } };
  const [name = "", ...rest] = key.split("[");
  const path = rest.map((part) => part.replace(/\]$/, ""));
  const [first = ""] = path;
  if (name === HEADERS) return { source: { attribute: { kind: "header", name: first }, values, notValues } };
  if (name === CLAIMS) return { source: { attribute: { kind: "claim", path }, values, notValues } };
  if (!name.startsWith(EXPERIMENTAL)) throw new Error(`unknown attribute ${JSON.stringify(key)} in a condition`);
  return { operation: { attribute: { kind: "metadata", filter: name.slice(EXPERIMENTAL.length), key: first }, values, notValues } };
}
