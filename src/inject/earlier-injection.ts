import { ANNOTATION } from "./annotations.ts";
import { type Container, type Fields, findContainer, isFields, type Pod } from "./pod.ts";
import { clearScrapeAnnotations, scrapePort } from "./prometheus.ts";

/** What an injection leaves behind in `sidecar.istio.io/status`, so that the next one can begin from the user's pod. */
export interface InjectionStatus {
  readonly initContainers: readonly string[];
  readonly containers: readonly string[];
  readonly volumes: readonly string[];
  readonly imagePullSecrets: readonly string[];
  readonly revision: string;
}

/** Containers that a user wrote under a name that a template uses too. */
export interface Overrides {
  readonly containers: readonly Container[];
  readonly initContainers: readonly Container[];
}

const NO_OVERRIDES: Overrides = { containers: [], initContainers: [] };

/** The status of an injected pod; undefined where there is none, or none that can be read. */
export function injectionStatus({ metadata }: Pod): InjectionStatus | undefined {
  const read = parsed(metadata.annotations?.[ANNOTATION.status]);
  if (read === undefined) return undefined;
  const names = (value: unknown): readonly string[] =>
    Array.isArray(value) ? value.filter((name): name is string => typeof name === "string") : [];
  return {
    initContainers: names(read.initContainers),
    containers: names(read.containers),
    volumes: names(read.volumes),
    imagePullSecrets: names(read.imagePullSecrets),
    revision: typeof read.revision === "string" ? read.revision : "",
  };
}

/** The user's own form of injected containers, kept in an annotation from the first injection on. */
export function keptOverrides({ metadata }: Pod): Overrides {
  const read = parsed(metadata.annotations?.[ANNOTATION.overrides]);
  if (read === undefined) return NO_OVERRIDES;
  const containers = (value: unknown): readonly Container[] =>
    Array.isArray(value)
      ? value.filter((one): one is Container => isFields(one) && typeof one.name === "string").map(withoutEmptyResources)
      : [];
  return { containers: containers(read.containers), initContainers: containers(read.initContainers) };
}

/** Empty resources are written there for every container that has none, as Istio does: put over a container, they would be something new. */
function withoutEmptyResources(container: Container): Container {
  const { resources, ...rest } = container;
  return isFields(resources) && Object.keys(resources).length === 0 ? rest : container;
}

/** The pod as it was before an earlier injection, as far as that can be known. One that was never injected comes back as it is. */
export function withoutEarlierInjection(pod: Pod, agentPort: string): Pod {
  const status = injectionStatus(pod);
  const overrides = keptOverrides(pod);
  const stripped = structuredClone(pod);
  const { spec, metadata } = stripped;
  if (status !== undefined) {
    const keep = (names: readonly string[]) => (container: Container) => !names.includes(container.name);
    if (spec.containers !== undefined) spec.containers = spec.containers.filter(keep(status.containers));
    if (spec.initContainers !== undefined) spec.initContainers = spec.initContainers.filter(keep(status.initContainers));
    if (scrapePort(stripped) === agentPort) clearScrapeAnnotations(stripped);
    delete metadata.annotations?.[ANNOTATION.status];
  }
  for (const side of ["containers", "initContainers"] as const) {
    const missing = overrides[side].filter(({ name }) => findContainer(spec[side], name) === undefined);
    if (missing.length > 0) spec[side] = [...(spec[side] ?? []), ...structuredClone(missing)];
  }
  return stripped;
}

function parsed(json: string | undefined): Fields | undefined {
  if (json === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(json);
    return isFields(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
