import type { Caller } from "../authn/authenticator.ts";
import type { Inputs } from "../config/inputs.ts";
import type { Pod } from "../config/kinds/pod/pod.ts";
import { type ConfigObject, objectKey } from "../config/object.ts";
import type { WorkloadIdentity } from "../pki/spiffe.ts";

export interface ActingCallersOptions {
  /** Accounts (`namespace/name`, separated by commas) that act for workloads on their own node. */
  readonly nodeAccounts: string;
  /** Accounts of control planes, which act for all of their trust domain. */
  readonly controlPlanes: string;
  /** The cluster of this control plane, by its name. */
  readonly clusterId: string;
  /** Objects in force, pods of all clusters among them. */
  readonly objects: Pick<Inputs["objects"], "get" | "list">;
}

/** Why a caller may not ask for the certificate of another; undefined where it may. */
export type ActingFault = (caller: Caller, holder: WorkloadIdentity) => string | undefined;

/**
 * Decides who may ask for certificates of others. An agent of a node is given those of workloads that run beside it, as in Istio (`CA_TRUSTED_NODE_ACCOUNTS`): who takes over a node
 * has what runs there, and nothing of the rest of the mesh. So its own pod must be known by a token that is bound to it; a certificate says nothing of a pod.
 */
export function actingCallers({ nodeAccounts, controlPlanes, clusterId, objects }: ActingCallersOptions): ActingFault {
  const [nodes, planes] = [accountsOf(nodeAccounts), accountsOf(controlPlanes)];
  return ({ identity, pod, cluster = clusterId }, holder) => {
    const account = `${identity.namespace}/${identity.serviceAccount}`;
    if (planes.has(account)) return undefined;
    if (!nodes.has(account)) return "the caller's account is not among those that may act for others";
    if (pod === undefined) return "the caller's token is bound to no pod, so its node is not known";
    const remote = cluster === clusterId ? "" : cluster;
    const own = objects.get(objectKey({ kind: "Pod", namespace: identity.namespace, name: pod.name, cluster: remote })) as
      | PodObject
      | undefined;
    if (own?.spec.uid !== pod.uid || accountOf(own) !== identity.serviceAccount)
      return "the caller's pod is not there, or is another by now";
    const { nodeName = "" } = own.spec.spec;
    const isBeside = (one: PodObject): boolean =>
      nodeName !== "" && one.spec.spec.nodeName === nodeName && accountOf(one) === holder.serviceAccount && isAlive(one);
    const there = objects.list("kindNamespace", `Pod/${holder.namespace}`) as readonly PodObject[];
    return there.some((one) => (one.cluster ?? "") === remote && isBeside(one))
      ? undefined
      : "no workload of that identity is on the caller's node";
  };
}

type PodObject = ConfigObject<Pod>;

const accountsOf = (text: string): ReadonlySet<string> =>
  new Set(
    text
      .split(",")
      .map((one) => one.trim())
      .filter((one) => one !== ""),
  );

const accountOf = ({ spec }: PodObject): string => spec.spec.serviceAccountName ?? "default";

const isAlive = ({ spec }: PodObject): boolean => spec.status.phase !== "Failed" && spec.status.phase !== "Succeeded";
