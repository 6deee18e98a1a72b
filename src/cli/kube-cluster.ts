import { resolve } from "node:path";
import { systemClock } from "../base/clock.ts";
import { EdgeError } from "../base/errors.ts";
import { findKubeAccess } from "../kube/kube-access.ts";
import { createKubeClient, type KubeClient } from "../kube/kube-client.ts";
import type { Arguments } from "./arguments.ts";
import type { Flag, Host } from "./command.ts";

/** Flags of commands that ask a Kubernetes cluster. */
export const CLUSTER_FLAGS: readonly Flag[] = [
  { name: "kubeconfig", short: "c", value: "FILE", about: "kubeconfig of the cluster (default $KUBECONFIG, then ~/.kube/config)" },
  { name: "context", value: "NAME", about: "context of the kubeconfig (default: its current one)" },
];

/** Asks the cluster that the flags or the environment name, and lets go of it after that. */
export async function withCluster<T>(args: Arguments, host: Host, ask: (client: KubeClient) => Promise<T>): Promise<T> {
  const file = args.text("kubeconfig");
  const context = args.text("context");
  const access = await findKubeAccess({
    env: {
      ...host.env,
      // Who names one means it, in a pod too.
      ...(file !== undefined && { KUBECONFIG: resolve(host.cwd, file), KUBERNETES_SERVICE_HOST: "" }),
      ...(context !== undefined && { KUBE_CONTEXT: context }),
    },
    clock: systemClock,
  });
  if (access === undefined)
    throw new EdgeError("kubernetes_unusable", "there is no cluster to ask", {
      hint: "name a kubeconfig with --kubeconfig or $KUBECONFIG",
    });
  const client = createKubeClient(access, systemClock, "istioctl");
  try {
    return await ask(client);
  } finally {
    client.close();
  }
}
