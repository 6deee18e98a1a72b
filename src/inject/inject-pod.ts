import { ANNOTATION, annotationFaults, LABEL } from "./annotations.ts";
import { injectionStatus, keptOverrides, withoutEarlierInjection } from "./earlier-injection.ts";
import { proxyImages } from "./images.ts";
import type { InjectionRequest, InjectionResult, InjectionSettings } from "./injection-request.ts";
import { orderContainers } from "./order-containers.ts";
import { reapplyOwnContainers } from "./overridden-containers.ts";
import { type Container, type Fields, findContainer, findProxy, isFields, type Pod, type PodOverlay, withoutRestartPolicy } from "./pod.ts";
import { rewriteProbes } from "./probes.ts";
import { announceSecurePort, mergeMetrics } from "./prometheus.ts";
import { proxyConfigLayers } from "./proxy-config-layers.ts";
import { adjustInterceptionUser } from "./proxy-user.ts";
import { PodShapeError, readPod } from "./read-pod.ts";
import { mergePod } from "./strategic-merge.ts";
import { interceptionMode, type TemplateInput } from "./template-input.ts";
import { TemplateError, templateNames } from "./template-set.ts";
import { POD_PORTS } from "./templates/pod-ports.ts";
import { holdsApplication } from "./templates/proxy-container.ts";

/**
 * Gives a pod its sidecar: the templates are put over the pod, what the user wrote for the same containers over that, and then come the things no
 * template can do: metrics, probes, order. Injecting the result again gives the same, so webhooks may call us as often as they like.
 */
export function injectPod(request: InjectionRequest, settings: InjectionSettings): InjectionResult {
  const { annotations = {} } = request.pod.metadata;
  const faults = annotationFaults(annotations);
  const layers = proxyConfigLayers(settings.mesh, request.proxyConfigs, annotations[ANNOTATION.proxyConfig]);
  if (!("own" in layers)) return { faults: [...faults, ...layers] };
  if (faults.length > 0) return { faults };
  const agentPort = layers.effective.statusPort || 15_020;
  const pod = withoutEarlierInjection(request.pod, String(agentPort));
  const input: TemplateInput = {
    pod,
    owner: request.owner,
    namespace: request.namespace,
    values: settings.values,
    mesh: settings.mesh,
    proxyConfig: layers.effective,
    ownProxyConfig: layers.own,
    revision: settings.revision,
    native: nativeOf(annotations, request.native),
    images: proxyImages(settings.values, pod, layers.effective.image?.imageType ?? ""),
    user: request.user,
    compliancePolicy: settings.compliancePolicy,
    ...earlierPorts(request.pod),
  };
  const templated = runTemplates(request.pod, input, settings);
  if ("faults" in templated) return templated;
  const merged = reapplyOwnContainers(templated.pod, request.pod, templated.template);
  adjustInterceptionUser(merged, pod, interceptionMode(input) === "TPROXY");
  const fault = finish(merged, { request, settings, input, template: templated.template, agentPort });
  return fault === undefined ? { pod: merged, warnings: layers.warnings } : { faults: [fault] };
}

function earlierPorts(pod: Pod): Pick<TemplateInput, "earlierPorts"> {
  if (injectionStatus(pod) === undefined) return {};
  const earlier = findProxy(pod)?.env?.find(({ name }) => name === POD_PORTS)?.value;
  return earlier === undefined ? {} : { earlierPorts: earlier };
}

const nativeOf = (annotations: Readonly<Record<string, string>>, fallback: boolean): boolean => {
  const said = annotations[ANNOTATION.nativeSidecar];
  return said === "true" || said === "false" ? said === "true" : fallback;
};

const EMPTY: Pod = { metadata: {}, spec: {} };

/** The pod with all templates over it, and the templates alone, which say what was injected. */
function runTemplates(
  original: Pod,
  input: TemplateInput,
  { config, templates }: InjectionSettings,
): { readonly pod: Pod; readonly template: Pod } | { readonly faults: readonly string[] } {
  let pod = structuredClone(original);
  let template = EMPTY;
  for (const name of templateNames(original.metadata.annotations?.[ANNOTATION.templates], config)) {
    const make = templates.get(name);
    if (make === undefined)
      return { faults: [`there is no template ${JSON.stringify(name)}; there are ${[...templates.keys()].join(", ")}`] };
    let overlay: PodOverlay;
    try {
      overlay = inPlace(make(input), template);
      template = readPod(mergePod(template, { ...overlay }));
    } catch (error) {
      if (error instanceof TemplateError) return { faults: [error.message] };
      if (error instanceof PodShapeError) return { faults: [`what template ${JSON.stringify(name)} gives is no pod: ${error.message}`] };
      throw error;
    }
    pod = mergePod(alignedWith(pod, template), { ...overlay });
  }
  return { pod: withoutStale(pod, original, template), template };
}

/** A later template speaks of a container under `containers` also where an earlier one made it an init container: that one is meant. */
function inPlace(overlay: PodOverlay, template: Pod): PodOverlay {
  const { spec } = overlay;
  if (!isFields(spec) || !Array.isArray(spec.containers)) return overlay;
  const isInit = (container: unknown): boolean =>
    isFields(container) && findContainer(template.spec.initContainers, String(container.name)) !== undefined;
  const moved = spec.containers.filter(isInit);
  if (moved.length === 0) return overlay;
  const rest: Fields = { ...spec, containers: spec.containers.filter((container) => !isInit(container)) };
  return { ...overlay, spec: { ...rest, initContainers: [...(Array.isArray(spec.initContainers) ? spec.initContainers : []), ...moved] } };
}

/** Moves what the pod has of the template's containers to the side where the template has them. */
function alignedWith(pod: Pod, template: Pod): Pod {
  const move = (from: Container[] = [], to: Container[] = [], wanted: readonly Container[] = []) => {
    const moving = from.filter(({ name }) => findContainer([...wanted], name) !== undefined && findContainer(to, name) === undefined);
    return { from: from.filter((one) => !moving.includes(one)), to: [...to, ...moving] };
  };
  const { containers, initContainers } = pod.spec;
  const toInit = move(containers, initContainers, template.spec.initContainers);
  const toMain = move(toInit.to, toInit.from, template.spec.containers);
  const main = toMain.to.map((container) => (toInit.from.includes(container) ? container : withoutRestartPolicy(container)));
  const spec = { ...pod.spec, containers: main, initContainers: toMain.from };
  if (initContainers === undefined && spec.initContainers.length === 0)
    return { ...pod, spec: { ...pod.spec, containers: spec.containers } };
  return { ...pod, spec };
}

/** Containers that an earlier injection added, and this one does not know any more. Those it only changed are the user's: it kept their form. */
function withoutStale(pod: Pod, original: Pod, template: Pod): Pod {
  const status = injectionStatus(original);
  if (status === undefined) return pod;
  const kept = keptOverrides(original);
  const spec = { ...pod.spec };
  for (const side of ["containers", "initContainers"] as const) {
    const isStale = ({ name }: Container): boolean =>
      [template.spec[side], kept.containers, kept.initContainers].every((known) => findContainer(known, name) === undefined) &&
      status[side].includes(name);
    if (spec[side] !== undefined) spec[side] = spec[side].filter((container) => !isStale(container));
  }
  return { ...pod, spec };
}

interface Finish {
  readonly request: InjectionRequest;
  readonly settings: InjectionSettings;
  readonly input: TemplateInput;
  readonly template: Pod;
  readonly agentPort: number;
}

/** What no template can do. Changes the pod; gives a sentence where that cannot be done. */
function finish(pod: Pod, { request, settings, input, template, agentPort }: Finish): string | undefined {
  const { values, mesh, config } = settings;
  setVariables(pod, request, input);
  const isOn = mesh.enablePrometheusMerge ?? true;
  const fault = mergeMetrics(pod, { isOn, agentPort: String(agentPort) });
  if (fault !== undefined) return fault;
  announceSecurePort(pod);
  rewriteProbes(pod, { rewrite: values.sidecarInjectorWebhook.rewriteAppHTTPProbe, agentPort });
  pod.metadata.annotations = {
    ...pod.metadata.annotations,
    [ANNOTATION.status]: statusText(template, settings.revision),
    ...config.injectedAnnotations,
  };
  orderContainers(pod, holdsApplication(input));
  return undefined;
}

/** Cluster and network, from the address of the webhook, the values or a label of the pod, the last of which counts most. */
function setVariables(pod: Pod, { variables }: InjectionRequest, { values }: TemplateInput): void {
  const cluster = variables.ISTIO_META_CLUSTER_ID || values.global.multiCluster.clusterName;
  const network = pod.metadata.labels?.[LABEL.network] ?? (variables.ISTIO_META_NETWORK || values.global.network);
  const all: Record<string, string> = {
    ...variables,
    ...(cluster !== "" && { ISTIO_META_CLUSTER_ID: cluster }),
    ...(network !== "" && { ISTIO_META_NETWORK: network }),
  };
  const proxy = findProxy(pod);
  if (proxy !== undefined && Object.keys(all).length > 0)
    proxy.env = [
      ...(proxy.env ?? []).filter(({ name }) => !Object.hasOwn(all, name)),
      ...Object.keys(all)
        .sort()
        .map((name) => ({ name, value: all[name] ?? "" })),
    ];
  if (network !== "") pod.metadata.labels = { ...pod.metadata.labels, [LABEL.network]: network };
}

function statusText({ spec }: Pod, revision: string): string {
  const names = (items: readonly { readonly name: string }[] | undefined): readonly string[] | null =>
    items === undefined || items.length === 0 ? null : items.map(({ name }) => name);
  return JSON.stringify({
    initContainers: names(spec.initContainers),
    containers: names(spec.containers),
    volumes: names(spec.volumes),
    imagePullSecrets: names(spec.imagePullSecrets),
    revision: revision || "default",
  });
}
