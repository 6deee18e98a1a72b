import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { ProxyView } from "../model/proxy.ts";
import type { PodClaim } from "../registry/claimed-pod.ts";

/**
 * What a proxy says of its pod, as text: labels, and the ports its injector wrote down (node metadata POD_PORTS, a list or the text of one). Empty where
 * it says nothing by which a Service could select it.
 */
export function workloadClaim({ labels, metadata }: Pick<ProxyView, "labels" | "metadata">): string {
  if (Object.keys(labels).length === 0) return "";
  const claim: PodClaim = { labels, ports: namedPorts((JSON.parse(metadata.raw) as JsonObject).POD_PORTS) };
  return JSON.stringify(claim);
}

/** The first port of a name has it, as for Kubernetes. */
function namedPorts(said: JsonValue | undefined): PodClaim["ports"] {
  const list = typeof said === "string" ? listIn(said) : said;
  const ports: Record<string, number> = {};
  for (const entry of Array.isArray(list) ? list : []) {
    if (typeof entry !== "object" || entry === null || Array.isArray(entry)) continue;
    const { name, containerPort, protocol = "TCP" } = entry;
    if (typeof name === "string" && typeof containerPort === "number" && protocol === "TCP") ports[name] ??= containerPort;
  }
  return ports;
}

function listIn(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
