import { isFields } from "../inject/pod.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import type { KubeObject, ResourceType } from "../kube/resource-type.ts";

export interface InjectorRootsOptions {
  readonly client: Pick<KubeClient, "list" | "patch">;
  readonly revision: string;
  /** In PEM; empty: nothing is written. */
  readonly roots: string;
}

const CONFIGURATIONS: ResourceType = {
  group: "admissionregistration.k8s.io",
  version: "v1",
  plural: "mutatingwebhookconfigurations",
  namespaced: false,
};
/** How names of Istio's webhooks for injection end. */
const INJECTOR = "sidecar-injector.istio.io";

/**
 * Gives the injection webhooks of a revision, which somebody installed in a cluster without a control plane, the roots that ours is verified with; gives the names
 * of the configurations that had others. Where they lead is for whoever installed them.
 */
export async function patchInjectorRoots({ client, revision, roots }: InjectorRootsOptions): Promise<readonly string[]> {
  if (roots === "") return [];
  const caBundle = Buffer.from(roots).toString("base64");
  const { items } = await client.list(CONFIGURATIONS, { labelSelector: `istio.io/rev=${revision || "default"}`, limit: 500 });
  const patched: string[] = [];
  for (const object of items) {
    const steps = stepsFor(object, caBundle);
    if (steps.length === 0) continue;
    // The version is tested, so that indexes of a list that somebody changed meanwhile are never used.
    const guard = { op: "test", path: "/metadata/resourceVersion", value: object.metadata.resourceVersion };
    await client.patch(CONFIGURATIONS, { name: object.metadata.name }, { as: "json", body: [guard, ...steps], fieldManager: "istiod" });
    patched.push(object.metadata.name);
  }
  return patched;
}

function stepsFor({ webhooks }: KubeObject, caBundle: string): readonly unknown[] {
  return (Array.isArray(webhooks) ? (webhooks as readonly unknown[]) : []).flatMap((webhook, index) => {
    const { name, clientConfig } = isFields(webhook) ? webhook : {};
    if (typeof name !== "string" || !name.endsWith(INJECTOR) || !isFields(clientConfig) || clientConfig.caBundle === caBundle) return [];
    return [{ op: "add", path: `/webhooks/${index}/clientConfig/caBundle`, value: caBundle }];
  });
}
