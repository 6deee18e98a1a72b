import { type Clock, waitAtMost } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { InjectionTexts } from "../inject/read-injection.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { Reflector } from "../kube/reflector.ts";
import type { KubeObject, ResourceType } from "../kube/resource-type.ts";
import type { ClusterInjection } from "../serve/cluster-link.ts";
import { revisionSuffix } from "../webhooks/webhook-configurations.ts";

export interface ClusterInjectorOptions {
  readonly client: Pick<KubeClient, "listEach" | "watch" | "server">;
  /** Namespace of the control plane. */
  readonly namespace: string;
  readonly revision: string;
  readonly clock: Clock;
  readonly log: Log;
}

const CONFIG_MAPS: ResourceType = { group: "", version: "v1", plural: "configmaps", namespaced: true };
const PATIENCE_MS = 3_000;

/** Follows the ConfigMap `istio-sidecar-injector`, or `istio-sidecar-injector-<revision>`, in the namespace of the control plane until the signal aborts. */
export function followInjector({ client, namespace, revision, clock, log }: ClusterInjectorOptions, signal: AbortSignal): ClusterInjection {
  let current: InjectionTexts | undefined;
  let changed: () => void = () => {};
  const known = Promise.withResolvers<void>();
  const reflector = new Reflector<InjectionTexts>({
    client,
    type: CONFIG_MAPS,
    selection: { namespace, fieldSelector: `metadata.name=istio-sidecar-injector${revisionSuffix(revision)}` },
    clock,
    log,
    shape: textsOf,
    changed({ upserts }) {
      const next = [...upserts.values()][0];
      if (JSON.stringify(next) === JSON.stringify(current)) return;
      current = next;
      changed();
    },
    noted() {
      const { synced, fault } = reflector.state;
      if (synced || fault?.isForbidden === true) known.resolve();
    },
  });
  void reflector.run(signal);
  return {
    get current() {
      return current;
    },
    ready: () => waitAtMost(clock, PATIENCE_MS, known.promise),
    follow(call) {
      changed = call;
    },
  };
}

function textsOf({ data }: KubeObject): InjectionTexts {
  const { config, values } = (typeof data === "object" && data !== null ? data : {}) as Readonly<Record<string, unknown>>;
  return { ...(typeof config === "string" && { config }), ...(typeof values === "string" && { values }) };
}
