import { isIP } from "node:net";
import { EdgeError } from "../../base/errors.ts";
import type { KubeClient } from "../../kube/kube-client.ts";
import type { ResourceType } from "../../kube/resource-type.ts";

const SERVICES: ResourceType = { group: "", version: "v1", plural: "services", namespaced: true };

/** What of a Service says where it is reached from outside. */
interface Reached {
  readonly spec?: { readonly externalIPs?: readonly string[] };
  readonly status?: { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string }[] } };
}

/**
 * Where a gateway's Service (`name`, or `name.namespace`) is reached from outside of the cluster: at its load balancer, else at its first external
 * address. Throws `EdgeError` where nothing says so.
 */
export async function ingressAddress(client: Pick<KubeClient, "get">, service: string, istioNamespace: string): Promise<string> {
  const [name = "", namespace = istioNamespace] = service.split(".");
  const { spec, status } = (await client.get(SERVICES, { namespace, name })) as Reached;
  const address = status?.loadBalancer?.ingress?.find(({ ip = "" }) => isIP(ip) !== 0)?.ip ?? spec?.externalIPs?.[0];
  if (address !== undefined && isIP(address) !== 0) return address;
  throw new EdgeError("not_found", `the Service ${name} in namespace ${namespace} has no address outside of the cluster`, {
    hint: "name one with --ingressIP or --address",
  });
}
