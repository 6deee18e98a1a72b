import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { LoadedMesh } from "../config/mesh/load-mesh.ts";
import type { KubeAccess } from "../kube/kube-access.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { LeaderLease } from "../kube/lease.ts";
import type { ServedWebhooks } from "../webhooks/served-webhooks.ts";
import { revisionSuffix, type WebhookPlace } from "../webhooks/webhook-configurations.ts";
import { keepWebhooks } from "../webhooks/webhook-keeper.ts";

export interface FollowOptions {
  readonly served: ServedWebhooks;
  readonly client: KubeClient;
  readonly access: KubeAccess;
  readonly namespace: string;
  readonly config: LoadedMesh;
  readonly clock: Clock;
  readonly log: Log;
}

const DEFAULT_INJECTOR = "istio-sidecar-injector";

/** Keeps webhook configurations current as long as this replica leads. */
export function followWebhooks({ served, client, access, namespace, config, clock, log }: FollowOptions, signal: AbortSignal): void {
  const { settings, process: own } = config;
  if (!own.clusterWrites) {
    log.info("webhook configurations are not written: the cluster is only read (`clusterWrites` in mesh.yaml)");
    return;
  }
  const { revision } = settings;
  const lease = new LeaderLease({
    client,
    namespace,
    name: `istiod-webhooks${revisionSuffix(revision)}`,
    holder: settings.podName || `${hostname()}-${process.pid}`,
    clock,
    log,
  });
  const keeper = {
    ...served,
    client,
    namespace,
    revision,
    place: placeOf({ url: settings.webhookUrl, inPod: access.inPod, revision, namespace, port: served.port }),
    names: {
      ...(settings.injectorName !== DEFAULT_INJECTOR && { injector: settings.injectorName }),
      ...(settings.validatorName !== undefined && { validator: settings.validatorName }),
    },
    clock,
    log,
  };
  void lease.run((term) => keepWebhooks(keeper, term), signal);
}

interface PlaceInput {
  readonly url: string;
  readonly inPod: boolean;
  readonly revision: string;
  readonly namespace: string;
  readonly port: number;
}

/** In a pod our Service leads to us; outside the API server has to find this machine, by its name unless told otherwise. */
function placeOf({ url, inPod, revision, namespace, port }: PlaceInput): WebhookPlace {
  if (url !== "") return { url };
  return inPod
    ? { service: { name: `istiod${revisionSuffix(revision)}`, namespace } }
    : { url: `https://${hostname().toLowerCase()}:${port}` };
}
