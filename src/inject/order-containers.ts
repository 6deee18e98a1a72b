import { type Container, findContainer, INIT_CONTAINER, type Pod, PROXY_CONTAINER, VALIDATION_CONTAINER } from "./pod.ts";

const CORE_DUMP = "enable-core-dump";

/**
 * Puts containers where they must start. A native sidecar stands first among the init containers, right after its interception is set up, so that
 * the user's own are in the mesh; otherwise interception comes last, since nobody would answer them. A proxy that holds the application back is
 * the first container, else the last, so that tools take the application for the pod. Changes the pod.
 */
export function orderContainers({ spec }: Pod, holdsApplication: boolean): void {
  if (spec.containers !== undefined)
    spec.containers = holdsApplication ? first(spec.containers, [PROXY_CONTAINER]) : last(spec.containers, [PROXY_CONTAINER]);
  if (spec.initContainers === undefined) return;
  const isNative = findContainer(spec.initContainers, PROXY_CONTAINER) !== undefined;
  spec.initContainers = isNative
    ? first(spec.initContainers, [INIT_CONTAINER, VALIDATION_CONTAINER, PROXY_CONTAINER, CORE_DUMP])
    : last(first(spec.initContainers, [VALIDATION_CONTAINER]), [INIT_CONTAINER, CORE_DUMP]);
}

const named = (containers: readonly Container[], names: readonly string[]): Container[] =>
  names.flatMap((name) => findContainer(containers, name) ?? []);
const others = (containers: readonly Container[], names: readonly string[]): Container[] =>
  containers.filter(({ name }) => !names.includes(name));

const first = (containers: readonly Container[], names: readonly string[]): Container[] => [
  ...named(containers, names),
  ...others(containers, names),
];
const last = (containers: readonly Container[], names: readonly string[]): Container[] => [
  ...others(containers, names),
  ...named(containers, names),
];
