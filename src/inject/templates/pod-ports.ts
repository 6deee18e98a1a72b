import { parseJson } from "../annotations.ts";
import { appContainers, type ContainerPort, findProxy } from "../pod.ts";
import type { TemplateInput } from "../template-input.ts";

/** Under this name the proxy knows the ports of its pod. */
export const POD_PORTS = "ISTIO_META_POD_PORTS";

/**
 * All ports of all containers as a JSON list, a line each: the form that tools expect. Where a user's own form of the proxy stood is not known any more
 * when the pod is injected again, so a list of before stays as long as it holds the same ports.
 */
export function podPorts({ pod, earlierPorts }: TemplateInput): string {
  const before = earlierPorts === undefined ? undefined : parseJson(earlierPorts);
  const apps = appContainers(pod).flatMap(({ ports = [] }) => ports.map(portText));
  if (earlierPorts !== undefined && Array.isArray(before)) {
    const texts = before.map((port) => JSON.stringify(port));
    const all = [...apps, ...(findProxy(pod)?.ports ?? []).map(portText)];
    if (apps.every((port) => texts.includes(port)) && texts.every((port) => all.includes(port))) return earlierPorts;
  }
  const ports = (pod.spec.containers ?? []).flatMap((container) => container.ports ?? []).map(portText);
  return ["[", ...ports.map((port, index) => `    ${index === 0 ? "" : ","}${port}`), "]"].join("\n");
}

const portText = ({ name, hostPort, containerPort, protocol, hostIP }: ContainerPort): string =>
  JSON.stringify({
    ...(name ? { name } : {}),
    ...(hostPort ? { hostPort } : {}),
    containerPort,
    ...(protocol ? { protocol } : {}),
    ...(hostIP ? { hostIP } : {}),
  });
