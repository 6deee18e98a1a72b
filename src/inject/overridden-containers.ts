import { ANNOTATION } from "./annotations.ts";
import { injectionStatus, keptOverrides, type Overrides } from "./earlier-injection.ts";
import { type Container, findContainer, type Pod, withoutRestartPolicy } from "./pod.ts";
import { mergePod } from "./strategic-merge.ts";

/** Stands for an image that the template is to choose, since a container must have one. */
const AUTO_IMAGE = "auto";
/** Order of a container's fields in Kubernetes; the rest follow. */
const FIELD_ORDER = ["name", "image", "command", "args", "workingDir", "ports", "envFrom", "env", "resources", "volumeMounts"];

/**
 * What a user writes in a container of an injected name wins over the template: the user's form is put over the result, and kept in an annotation so
 * that the next injection can do the same. Gives a new pod.
 */
export function reapplyOwnContainers(pod: Pod, original: Pod, template: Pod): Pod {
  const status = injectionStatus(original);
  const injected = new Set([...(status?.containers ?? []), ...(status?.initContainers ?? [])]);
  const kept = keptOverrides(original);
  const ownOf = (side: keyof Overrides): readonly Container[] =>
    (template.spec[side] ?? []).flatMap(({ name }) => {
      const known = findContainer([...kept[side]], name);
      if (known !== undefined) return [known];
      if (injected.has(name)) return [];
      const own = findContainer(original.spec[side], name) ?? elsewhere(original, side, name);
      return own === undefined ? [] : [withoutAuto(own)];
    });
  const own: Overrides = { containers: ownOf("containers"), initContainers: ownOf("initContainers") };
  if (own.containers.length + own.initContainers.length === 0) return pod;
  const merged = mergePod(pod, { spec: Object.fromEntries(Object.entries(own).filter(([, list]) => list.length > 0)) });
  if (status !== undefined) return merged;
  const annotations = { ...merged.metadata.annotations, [ANNOTATION.overrides]: overridesText(own) };
  return { ...merged, metadata: { ...merged.metadata, annotations } };
}

/** A container that the user wrote on the other side than the template has it. */
function elsewhere({ spec }: Pod, side: keyof Overrides, name: string): Container | undefined {
  if (side === "initContainers") return findContainer(spec.containers, name);
  const found = findContainer(spec.initContainers, name);
  return found === undefined ? undefined : withoutRestartPolicy(found);
}

function withoutAuto({ image, ...rest }: Container): Container {
  return structuredClone(image === undefined || image === "" || image === AUTO_IMAGE ? rest : { ...rest, image });
}

function overridesText({ containers, initContainers }: Overrides): string {
  return JSON.stringify({
    ...(containers.length > 0 && { containers: containers.map(ordered) }),
    ...(initContainers.length > 0 && { initContainers: initContainers.map(ordered) }),
  });
}

function ordered(container: Container): Record<string, unknown> {
  const all: Record<string, unknown> = { resources: {}, ...container };
  const first = FIELD_ORDER.filter((field) => all[field] !== undefined);
  return Object.fromEntries([...first, ...Object.keys(all).filter((field) => !first.includes(field))].map((field) => [field, all[field]]));
}
