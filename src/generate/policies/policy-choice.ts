import { type Labels, matchesLabels } from "../../base/labels.ts";
import { type ConfigObject, objectKey } from "../../config/object.ts";
import type { Engine, Query } from "../../engine/index.ts";
import type { AuthorizationPolicy } from "../../gen/istio/security/v1beta1/authorization_policy_pb.js";
import type { RequestAuthentication } from "../../gen/istio/security/v1beta1/request_authentication_pb.js";
import type { GenerateContext } from "../context.ts";
import { isTargeted } from "../lookups/policy-target.ts";
import { byPrecedence } from "../lookups/precedence.ts";

type SecurityPolicy = AuthorizationPolicy | RequestAuthentication;

/** Object keys of the policies that apply to a workload, in order. */
export interface PolicyKeys {
  readonly authentication: readonly string[];
  readonly authorization: readonly string[];
}

const NO_POLICIES: PolicyKeys = { authentication: [], authorization: [] };

export interface PolicyQuery {
  readonly namespace: string;
  readonly labels: Labels;
}

type PolicyChoice = (query: PolicyQuery) => PolicyKeys;

const defined = new WeakMap<Engine, PolicyChoice>();

/** The choice of an engine; defined on first use, since servers behind Envoy and those without a proxy ask for it alike. */
export function policyChoiceOf(ctx: Pick<GenerateContext, "engine" | "inputs">): PolicyChoice {
  const known = defined.get(ctx.engine) ?? definePolicyChoice(ctx);
  defined.set(ctx.engine, known);
  return known;
}

/**
 * The RequestAuthentications and AuthorizationPolicies that apply to a workload, as Istio's references of the two say: those of the root
 * namespace, then those of its own; of each, those without a selector and those whose selector or target it is. Workloads of namespaces
 * without policies are not told apart by their labels.
 */
function definePolicyChoice(ctx: Pick<GenerateContext, "engine" | "inputs">): PolicyChoice {
  const inNamespace = ctx.engine.query<string, readonly ConfigObject<SecurityPolicy>[]>({
    name: "securityPoliciesIn",
    compute: (kindNamespace) =>
      (ctx.inputs.objects.list("kindNamespace", kindNamespace) as readonly ConfigObject<SecurityPolicy>[]).toSorted(byPrecedence),
  });
  const rootNamespace = (): string => ctx.inputs.mesh.get("mesh")?.rootNamespace ?? "istio-system";
  const candidates = (kind: string, namespace: string): readonly ConfigObject<SecurityPolicy>[] => {
    const root = rootNamespace();
    return [root, ...(namespace === root ? [] : [namespace])].flatMap((one) => inNamespace(`${kind}/${one}`));
  };
  const chosen = (kind: string, query: PolicyQuery): readonly string[] =>
    candidates(kind, query.namespace)
      .filter((policy) => appliesTo(policy, query, rootNamespace()))
      .map(objectKey);
  const exist = ctx.engine.query<string, boolean>({
    name: "hasSecurityPolicies",
    compute: (namespace) => KINDS.some((kind) => candidates(kind, namespace).length > 0),
  });
  const choice: Query<PolicyQuery, PolicyKeys> = ctx.engine.query<PolicyQuery, PolicyKeys>({
    name: "policiesFor",
    id: ({ namespace, labels }) => `${namespace}|${JSON.stringify(labels)}`,
    compute: (query) => ({
      authentication: chosen("RequestAuthentication", query).toSorted(ownFirst(query.namespace)),
      authorization: chosen("AuthorizationPolicy", query),
    }),
  });
  return ({ namespace, labels }) => (exist(namespace) ? choice({ namespace, labels }) : NO_POLICIES);
}

/** Of rules about one issuer those of the workload's own namespace are asked first, as in Istio; what was in order stays so. */
const ownFirst =
  (namespace: string) =>
  (a: string, b: string): number =>
    Number(!a.startsWith(`RequestAuthentication/${namespace}/`)) - Number(!b.startsWith(`RequestAuthentication/${namespace}/`));

const KINDS = ["RequestAuthentication", "AuthorizationPolicy"] as const;

function appliesTo({ namespace, spec }: ConfigObject<SecurityPolicy>, workload: PolicyQuery, root: string): boolean {
  const targets = spec.targetRef === undefined ? spec.targetRefs : [spec.targetRef, ...spec.targetRefs];
  if (targets.length > 0) return isTargeted(targets, { policyNamespace: namespace, workload, rootNamespace: root });
  return matchesLabels(spec.selector?.matchLabels ?? {}, workload.labels);
}
