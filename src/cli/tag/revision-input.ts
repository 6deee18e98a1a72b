import { EdgeError } from "../../base/errors.ts";
import type { KubeObject } from "../../kube/resource-type.ts";
import { type ConfigurationInput, injectorName, revisionLabel } from "../../webhooks/webhook-configurations.ts";

/** The part of a webhook that says where it leads. */
interface Webhook {
  readonly clientConfig?: {
    readonly service?: { readonly name: string; readonly namespace: string; readonly path?: string };
    readonly url?: string;
    readonly caBundle?: string;
  };
  readonly failurePolicy?: string;
}

/** An address or a path: what stands before, and the place where pods are injected, with what it may say of their cluster. */
const TO_INJECT = /^(.*?)(\/inject(?:\/.*)?)$/;

/**
 * What the configuration that injects for a revision says of its control plane, so that a tag leads to the same place, is verified by the same roots and is as
 * strict from its first moment on. `namespace` is that of the control plane, where the configuration does not say so.
 */
export function revisionInput(object: KubeObject, namespace: string): ConfigurationInput {
  const webhooks = (Array.isArray(object.webhooks) ? object.webhooks : []) as readonly Webhook[];
  const { service, url, caBundle } = webhooks[0]?.clientConfig ?? {};
  const [, base = "", injectionPath] = TO_INJECT.exec(service?.path ?? url ?? "") ?? [];
  if (injectionPath === undefined) throw new EdgeError("not_found", `${object.metadata.name} does not lead to /inject of a control plane`);
  return {
    revision: revisionLabel(object),
    namespace: service?.namespace ?? namespace,
    place: service === undefined ? { url: base } : { service: { name: service.name, namespace: service.namespace } },
    injectionPath,
    caBundle: caBundle === undefined ? undefined : Buffer.from(caBundle, "base64").toString(),
    failClosed: webhooks.some(({ failurePolicy }) => failurePolicy === "Fail"),
    enableNamespacesByDefault: false,
  };
}

/** The configuration of a revision among those that carry its label: the one of the control plane in this namespace, or the only one there is. */
export function chosenInjector(found: readonly KubeObject[], revision: string, namespace: string): KubeObject {
  const [first, ...others] = found;
  const named = found.find(({ metadata }) => metadata.name === injectorName(revision, namespace));
  if (named !== undefined) return named;
  if (first === undefined)
    throw new EdgeError("not_found", `there is no revision ${JSON.stringify(revision)}: no webhook configuration injects for it`);
  if (others.length > 0)
    throw new EdgeError("usage", `several control planes have the revision ${JSON.stringify(revision)}; say which with --istioNamespace`);
  return first;
}
