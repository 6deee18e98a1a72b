import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import { isFields } from "../inject/pod.ts";
import type { KubeClient } from "../kube/kube-client.ts";
import { KubeError } from "../kube/kube-error.ts";
import type { KubeObject, ResourceType } from "../kube/resource-type.ts";
import {
  type ConfigurationInput,
  injectorName,
  isForOwnNamespace,
  MUTATING_CONFIGURATIONS as MUTATING,
  mutatingWebhookConfiguration,
  revisionSuffix,
  VALIDATING_CONFIGURATIONS as VALIDATING,
  validatingWebhookConfiguration,
  validatorName,
  type WebhookPlace,
} from "./webhook-configurations.ts";
import type { PatchNote } from "./webhook-metrics.ts";

export interface KeeperOptions {
  readonly client: Pick<KubeClient, "get" | "list" | "create" | "patch">;
  readonly namespace: string;
  readonly revision: string;
  readonly place: WebhookPlace;
  /** What is served; what is not is not created either. */
  readonly injects: boolean;
  readonly validates: boolean;
  /** Names other than Istio's; an empty one is not kept. */
  readonly names: { readonly injector?: string; readonly validator?: string };
  /** Pods of namespaces that say nothing are injected, too. */
  readonly injectsByDefault: boolean;
  /** Roots in PEM that our certificate is verified with; empty as long as there are none. */
  caBundle(): string;
  readonly patched: PatchNote;
  readonly clock: Clock;
  readonly log: Log;
}

const GATEWAYS: ResourceType = { group: "networking.istio.io", version: "v1", plural: "gateways", namespaced: true };
const LOOK_MS = 5_000;
const FIRST_LOOK_MS = 1_000;

/**
 * Keeps the webhook configurations of this revision current: creates them where they are missing, gives all that lead to us, tags too, the roots of our
 * certificate, and lets them refuse requests in our absence only once a request has come through. Those of other revisions and places are never
 * touched, nor are selectors that somebody changed. Runs until the signal aborts; only one replica at a time should.
 */
export async function keepWebhooks(options: KeeperOptions, signal: AbortSignal): Promise<void> {
  const { clock, log } = options;
  let before = "";
  let isProven = false;
  while (!signal.aborted) {
    let wait = LOOK_MS;
    try {
      const caBundle = options.caBundle();
      if (caBundle !== "") {
        await keepOnce(options, { caBundle, failClosed: isProven });
        if (!isProven) {
          isProven = await comesThrough(options);
          if (isProven) await keepOnce(options, { caBundle, failClosed: true });
          else wait = FIRST_LOOK_MS;
        }
        before = "";
      }
    } catch (error) {
      // A cluster that does not let us write is said once, not every ten seconds.
      if (messageOf(error) !== before) log.warn({ reason: messageOf(error) }, "webhook configurations cannot be kept current");
      before = messageOf(error);
    }
    await clock.sleep(wait, signal).catch(() => undefined);
  }
}

type Wanted = Pick<ConfigurationInput, "failClosed"> & { readonly caBundle: string };

async function keepOnce(options: KeeperOptions, wanted: Wanted): Promise<void> {
  const { namespace, revision, place, names, injects, validates, injectsByDefault } = options;
  const input: ConfigurationInput = { namespace, revision, place, enableNamespacesByDefault: injectsByDefault, ...wanted };
  if (injects && names.injector !== "") {
    const made = mutatingWebhookConfiguration(input);
    await ensure(options, MUTATING, named(made, names.injector ?? injectorName(revision, namespace)));
    for (const other of await ofRevision(options, MUTATING)) await refresh(options, MUTATING, { object: other, wanted });
  }
  if (validates && names.validator !== "") {
    const made = validatingWebhookConfiguration(input);
    await ensure(options, VALIDATING, named(made, names.validator ?? validatorName(revision, namespace)));
    for (const other of await ofRevision(options, VALIDATING)) await refresh(options, VALIDATING, { object: other, wanted });
  }
}

const named = (object: KubeObject, name: string): KubeObject => ({ ...object, metadata: { ...object.metadata, name } });

async function ensure({ client, log }: KeeperOptions, type: ResourceType, object: KubeObject): Promise<void> {
  try {
    await client.get(type, { name: object.metadata.name });
    return;
  } catch (error) {
    if (!(error instanceof KubeError && error.isNotFound)) throw error;
  }
  await client.create(type, object, { fieldManager: "istiod" }).catch((error: unknown) => {
    if (!(error instanceof KubeError && error.isConflict)) throw error;
  });
  log.info({ name: object.metadata.name }, "created a webhook configuration");
}

async function ofRevision({ client, revision }: KeeperOptions, type: ResourceType): Promise<readonly KubeObject[]> {
  const { items } = await client.list(type, { labelSelector: `istio.io/rev=${revision || "default"}`, limit: 500 });
  return [...items];
}

/** Patches what is ours to say in each webhook that leads to us: the roots, and whether it may refuse in our absence. */
async function refresh(
  { client, place, log, patched }: KeeperOptions,
  type: ResourceType,
  { object, wanted }: { readonly object: KubeObject; readonly wanted: Wanted },
): Promise<void> {
  const caBundle = Buffer.from(wanted.caBundle).toString("base64");
  const webhooks = Array.isArray(object.webhooks) ? object.webhooks : [];
  const steps = webhooks.flatMap((webhook, index) => {
    if (!isFields(webhook) || !leadsTo(webhook.clientConfig, place)) return [];
    const { clientConfig, failurePolicy, name } = webhook;
    const mayRefuse = wanted.failClosed && failurePolicy !== "Fail" && !isForOwnNamespace(name);
    return [
      ...(isFields(clientConfig) && clientConfig.caBundle === caBundle
        ? []
        : [{ op: "add", path: `/webhooks/${index}/clientConfig/caBundle`, value: caBundle }]),
      ...(mayRefuse ? [{ op: "replace", path: `/webhooks/${index}/failurePolicy`, value: "Fail" }] : []),
    ];
  });
  if (steps.length === 0) return;
  // The version is tested, so that indexes of a list that somebody changed meanwhile are never used.
  const guard = { op: "test", path: "/metadata/resourceVersion", value: object.metadata.resourceVersion };
  const what = type === MUTATING ? "injector" : "validator";
  try {
    await client.patch(type, { name: object.metadata.name }, { as: "json", body: [guard, ...steps], fieldManager: "istiod" });
  } catch (error) {
    patched(what, object.metadata.name, error instanceof KubeError ? error.reason : "Unknown");
    throw error;
  }
  patched(what, object.metadata.name);
  log.info({ name: object.metadata.name, changes: steps.length }, "brought a webhook configuration up to date");
}

function leadsTo(clientConfig: unknown, place: WebhookPlace): boolean {
  if (!isFields(clientConfig)) return false;
  if ("url" in place) return typeof clientConfig.url === "string" && clientConfig.url.startsWith(`${place.url.replace(/\/$/, "")}/`);
  const { service } = clientConfig;
  return isFields(service) && service.name === place.service.name && service.namespace === place.service.namespace;
}

/**
 * Whether the API server reaches us: it is asked to pretend to create an object that only we would refuse. Where we judge nothing there is nothing to
 * ask with, and having been reached is not known.
 */
async function comesThrough({ client, namespace, validates, revision, names }: KeeperOptions): Promise<boolean> {
  if (!validates || names.validator === "") return false;
  // In our own namespace, the only one where we may create anything of the kind; objects of the default revision carry no label there.
  const labels = revisionSuffix(revision) === "" ? {} : { "istio.io/rev": revision };
  const object: KubeObject = {
    apiVersion: "networking.istio.io/v1",
    kind: "Gateway",
    metadata: { name: "istiod-asks-whether-it-is-reached", namespace, labels },
    spec: { servers: [{ port: { number: 80, name: "http", protocol: "HTTP" }, hosts: ["*/*/*"] }] },
  };
  try {
    await client.create(GATEWAYS, object, { dryRun: true });
    return false;
  } catch (error) {
    return error instanceof KubeError && /validation\.istio\.io.*denied/s.test(error.message);
  }
}
