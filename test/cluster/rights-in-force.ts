import { eventually } from "../support/wait.ts";
import type { ApiConnection } from "./api-connection.ts";
import type { KubeObject } from "./kube-object.ts";

interface Rule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly verbs?: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** A RoleBinding or ClusterRoleBinding. */
interface Binding extends KubeObject {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects?: readonly { readonly kind: string; readonly name: string; readonly namespace?: string }[];
}

const RBAC = "/apis/rbac.authorization.k8s.io/v1";

/**
 * Resolves when the API server goes by a binding that was just written. It judges callers by what it has heard of roles, which comes to it as to any other
 * watcher: whoever calls at once as the bound account may be refused.
 */
export async function rightsInForce(api: ApiConnection, object: KubeObject): Promise<void> {
  const { roleRef, subjects = [], metadata } = object as Binding;
  const [account] = subjects.filter(({ kind }) => kind === "ServiceAccount");
  if (account === undefined) return;
  const scope = roleRef.kind === "Role" ? `/namespaces/${metadata.namespace}/roles` : "/clusterroles";
  const rules = await api
    .call({ method: "GET", path: `${RBAC}${scope}/${roleRef.name}` })
    .then(({ body }) => (body as { readonly rules?: readonly Rule[] | null }).rules ?? [])
    .catch(() => []);
  const rule = rules.find(({ resources = [] }) => resources.length > 0);
  if (rule === undefined) return;
  const [resource = "", subresource = ""] = (rule.resources?.[0] ?? "").split("/");
  const asked = {
    ...{ group: rule.apiGroups?.[0] ?? "", resource, subresource, verb: rule.verbs?.[0] ?? "" },
    ...(metadata.namespace !== undefined && { namespace: metadata.namespace }),
    ...(rule.resourceNames?.[0] !== undefined && { name: rule.resourceNames[0] }),
  };
  const user = `system:serviceaccount:${account.namespace ?? metadata.namespace}:${account.name}`;
  await eventually(`${user} has the rights of ${roleRef.name}`, async () => {
    const { body } = await api.call({
      method: "POST",
      path: "/apis/authorization.k8s.io/v1/subjectaccessreviews",
      body: {
        apiVersion: "authorization.k8s.io/v1",
        kind: "SubjectAccessReview",
        spec: { user, groups: ["system:serviceaccounts"], resourceAttributes: asked },
      },
    });
    return (body as { readonly status: { readonly allowed: boolean } }).status.allowed;
  });
}
