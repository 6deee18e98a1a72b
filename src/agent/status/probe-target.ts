import { isIPv6 } from "node:net";
import type { AgentContext } from "../parts.ts";
import type { ProbeTarget } from "./run-probe.ts";

/** Where probes of the application go: to the workload's own address, from one that interception lets through. */
export function probeTarget({ config, node, clock }: Pick<AgentContext, "config" | "node" | "clock">): ProbeTarget {
  const address = node.id.split("~")[1] ?? "";
  const intercepted = node.metadata.INTERCEPTION_MODE !== undefined && node.metadata.INTERCEPTION_MODE !== "NONE";
  return {
    host: config.settings.probeLocalhost ? "localhost" : address,
    from: intercepted ? (isIPv6(address) ? "::6" : "127.0.0.6") : undefined,
    statusPort: config.proxy.statusPort,
    clock,
  };
}
