import type { KubeObject } from "../kube/resource-type.ts";
import { type InstallOptions, installLabels, installName } from "./install-options.ts";

const API_VERSION = "rbac.authorization.k8s.io/v1";
const API_GROUP = "rbac.authorization.k8s.io";
const READ = ["get", "list", "watch"] as const;

/** One rule of a role. */
export interface AccessRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** What is read and written in all namespaces. Nothing here that istiod does not use: a test runs it with these rights alone. */
export const CLUSTER_RULES: readonly AccessRule[] = [
  // Configuration, and which kinds of it are installed.
  { apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: READ },
  {
    apiGroups: ["networking.istio.io", "security.istio.io", "telemetry.istio.io", "extensions.istio.io"],
    resources: ["*"],
    verbs: READ,
  },
  // How it stands, and nothing else of it.
  {
    apiGroups: ["networking.istio.io", "security.istio.io", "telemetry.istio.io", "extensions.istio.io"],
    resources: ["*/status"],
    verbs: ["patch"],
  },
  // Machines that register themselves.
  { apiGroups: ["networking.istio.io"], resources: ["workloadentries"], verbs: ["create", "update", "delete"] },
  { apiGroups: ["gateway.networking.k8s.io"], resources: ["referencegrants"], verbs: READ },
  // Services and who serves them; Secrets and ConfigMaps that gateways and destinations name; accounts that tokens are for.
  {
    apiGroups: [""],
    resources: ["configmaps", "namespaces", "nodes", "pods", "secrets", "serviceaccounts", "services"],
    verbs: READ,
  },
  { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: READ },
  // The roots and what the CA revoked, in ConfigMaps of every namespace.
  { apiGroups: [""], resources: ["configmaps"], verbs: ["create"] },
  { apiGroups: [""], resources: ["configmaps"], resourceNames: ["istio-ca-root-cert", "istio-ca-crl"], verbs: ["patch"] },
  // Whose token it is, and who may read a gateway's credentials.
  { apiGroups: ["authentication.k8s.io"], resources: ["tokenreviews"], verbs: ["create"] },
  { apiGroups: ["authorization.k8s.io"], resources: ["subjectaccessreviews"], verbs: ["create"] },
  // Webhooks that lead to us.
  {
    apiGroups: ["admissionregistration.k8s.io"],
    resources: ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
    verbs: ["get", "list", "create", "patch"],
  },
];

/** What is written in the namespace of the control plane. */
export const OWN_RULES: readonly AccessRule[] = [
  // The CA, where none is there.
  { apiGroups: [""], resources: ["secrets"], verbs: ["create"] },
  // Which replica leads, and what each tells the others of its proxies.
  {
    apiGroups: ["coordination.k8s.io"],
    resources: ["leases"],
    verbs: ["get", "list", "watch", "create", "update", "patch", "delete"],
  },
  // A dry run of a bad object shows whether the API server reaches the webhooks.
  { apiGroups: ["networking.istio.io"], resources: ["gateways"], verbs: ["create"] },
];

/** The account that a control plane runs as, and its rights. */
export function accessObjects(options: InstallOptions): readonly KubeObject[] {
  const { namespace } = options;
  const name = installName(options);
  const labels = installLabels(options);
  const clusterName = `istiod-clusterrole${name.slice("istiod".length)}-${namespace}`;
  const subjects = [{ kind: "ServiceAccount", name, namespace }];
  const roleRef = (kind: string, role: string) => ({ apiGroup: API_GROUP, kind, name: role });
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace, labels } },
    { apiVersion: API_VERSION, kind: "ClusterRole", metadata: { name: clusterName, labels }, rules: CLUSTER_RULES },
    {
      apiVersion: API_VERSION,
      kind: "ClusterRoleBinding",
      metadata: { name: clusterName, labels },
      roleRef: roleRef("ClusterRole", clusterName),
      subjects,
    },
    { apiVersion: API_VERSION, kind: "Role", metadata: { name, namespace, labels }, rules: OWN_RULES },
    { apiVersion: API_VERSION, kind: "RoleBinding", metadata: { name, namespace, labels }, roleRef: roleRef("Role", name), subjects },
  ];
}
