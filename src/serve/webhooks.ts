import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { EdgeError } from "../base/errors.ts";
import { mergeBundles } from "../pki/chain.ts";
import { type HostPort, parseHostPort } from "../settings/host-port.ts";
import { listenWebhooks } from "../webhooks/webhook-server.ts";
import type { ClusterLink } from "./cluster-link.ts";
import type { Parts } from "./control-plane.ts";
import type { HealthCheck } from "./health.ts";
import { type FollowedInjection, followInjection } from "./injection-world.ts";

const DEFAULT_ADDRESS = ":15017";

/** What webhooks are opened with. */
export interface WebhookOptions {
  /** What is open is added here at once, so that a failure later can close it. */
  readonly opened: Server[];
  /** The cluster that calls them, where there is one. */
  readonly cluster: Pick<ClusterLink, "namespace" | "keepWebhooks" | "injector"> | undefined;
}

/** Opens the port of the admission webhooks, where somebody could call them: with a cluster, or where an address was asked for. Undefined where not. */
export async function openWebhooks(parts: Parts, { opened, cluster }: WebhookOptions): Promise<HostPort | undefined> {
  const { mesh, identity, metrics, options } = parts;
  const { process, settings } = mesh.current;
  const { listen, services } = process;
  const injects = services.inject && settings.injectEnabled;
  const isAsked = settings.httpsAddr !== undefined || listen.httpsAddr !== DEFAULT_ADDRESS;
  if (listen.httpsAddr === "" || (!injects && !services.validate) || (cluster === undefined && !isAsked)) return undefined;
  if (identity.tls === undefined) {
    if (!identity.isIncomplete) options.log.warn("the webhooks stay closed: there is neither a CA nor a certificate in etc/certs");
    return undefined;
  }
  const at = parseHostPort(listen.httpsAddr);
  if (typeof at === "string") throw new EdgeError("mesh_config_invalid", at);
  const inCluster = injects ? cluster?.injector() : undefined;
  await inCluster?.ready();
  const injection = injects
    ? await followInjection(parts, { namespace: cluster?.namespace ?? settings.podNamespace, inCluster })
    : undefined;
  const server = await listenWebhooks({
    host: at.host || "::",
    port: at.port,
    tls: identity.tls,
    injection,
    validates: services.validate,
    metrics: metrics.webhooks,
    clock: options.clock,
    log: options.log,
  });
  opened.push(server);
  const { port } = server.address() as AddressInfo;
  if (injection !== undefined) {
    server.once("close", injection.stop);
    parts.laterChecks.push(() => [injectionCheck(injection)]);
    parts.injection.shown = () => shownInjection(injection);
  }
  const { tls } = identity;
  // Both, so that while one root follows another the API server believes either.
  const caBundle = (): string => mergeBundles([identity.publishedRoots(), ...tls.current.clientRoots]);
  const injectsByDefault = injection?.settings().values.sidecarInjectorWebhook.enableNamespacesByDefault ?? false;
  const { patched } = metrics.webhooks;
  cluster?.keepWebhooks({ port, injects, validates: services.validate, injectsByDefault, caBundle, patched });
  return { host: at.host, port };
}

const injectionCheck = ({ fault, settings }: FollowedInjection): HealthCheck => ({
  name: "injection",
  ok: fault === undefined,
  blocks: false,
  detail:
    fault === undefined ? `templates: ${[...settings().templates.keys()].join(", ")}` : `the last good configuration is in force: ${fault}`,
});

/** What `/debug/inject` shows: a built-in template has no text. */
function shownInjection({ settings, fault }: FollowedInjection): unknown {
  const { config, templates, values, revision } = settings();
  const { templates: texts, ...rest } = config;
  return {
    revision,
    ...rest,
    templates: Object.fromEntries([...templates.keys()].map((name) => [name, texts[name] ?? "built in"])),
    values,
    fault,
  };
}
