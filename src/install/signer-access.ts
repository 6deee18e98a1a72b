import type { KubeObject } from "../kube/resource-type.ts";
import type { AccessRule } from "./access.ts";
import { type InstallOptions, installLabels, installName } from "./install-options.ts";

const GROUP = "certificates.k8s.io";
const API_GROUP = "rbac.authorization.k8s.io";

/** A name that stands for the signer in the file: whoever uses it puts theirs in its place. */
export const EXAMPLE_SIGNER = "example.com/istio";

/** What istiod needs to have certificates signed by signers of the cluster. Approving is for these signers only: others sign what opens the cluster itself. */
export const signerRules = (signers: readonly string[]): readonly AccessRule[] => [
  { apiGroups: [GROUP], resources: ["certificatesigningrequests"], verbs: ["get", "list", "watch", "create", "delete"] },
  { apiGroups: [GROUP], resources: ["certificatesigningrequests/approval"], verbs: ["update"] },
  { apiGroups: [GROUP], resources: ["signers"], resourceNames: signers, verbs: ["approve"] },
  // The roots of a signer, where the cluster publishes them.
  { apiGroups: [GROUP], resources: ["clustertrustbundles"], verbs: ["get", "list", "watch"] },
];

/** A role of its own beside the others, since most control planes need none of it. */
export function signerAccess(options: InstallOptions, signers: readonly string[]): readonly KubeObject[] {
  const { namespace } = options;
  const account = installName(options);
  const labels = installLabels(options);
  const name = `istiod-signer${account.slice("istiod".length)}-${namespace}`;
  const apiVersion = `${API_GROUP}/v1`;
  return [
    { apiVersion, kind: "ClusterRole", metadata: { name, labels }, rules: signerRules(signers) },
    {
      apiVersion,
      kind: "ClusterRoleBinding",
      metadata: { name, labels },
      roleRef: { apiGroup: API_GROUP, kind: "ClusterRole", name },
      subjects: [{ kind: "ServiceAccount", name: account, namespace }],
    },
  ];
}
