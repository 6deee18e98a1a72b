import type { KubeObject } from "../kube/resource-type.ts";
import type { AccessRule } from "./access.ts";
import { type InstallOptions, installLabels, installName } from "./install-options.ts";

const GROUP = "certificates.k8s.io";
const API_GROUP = "rbac.authorization.k8s.io";

/** What istiod needs to publish its roots in a ClusterTrustBundle: only who may attest for a signer may write bundles of it. */
const RULES: readonly AccessRule[] = [
  { apiGroups: [GROUP], resources: ["clustertrustbundles"], verbs: ["get", "list", "watch", "create", "update"] },
  { apiGroups: [GROUP], resources: ["signers"], resourceNames: ["istio.io/istiod-ca"], verbs: ["attest"] },
];

/** A role of its own beside the others, since most control planes need none of it. */
export function trustBundleAccess(options: InstallOptions): readonly KubeObject[] {
  const { namespace } = options;
  const account = installName(options);
  const labels = installLabels(options);
  const name = `istiod-trust-bundle${account.slice("istiod".length)}-${namespace}`;
  const apiVersion = `${API_GROUP}/v1`;
  return [
    { apiVersion, kind: "ClusterRole", metadata: { name, labels }, rules: RULES },
    {
      apiVersion,
      kind: "ClusterRoleBinding",
      metadata: { name, labels },
      roleRef: { apiGroup: API_GROUP, kind: "ClusterRole", name },
      subjects: [{ kind: "ServiceAccount", name: account, namespace }],
    },
  ];
}
